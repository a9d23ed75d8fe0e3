"""Saves what its documents say it saves; a claim that does not hold here is an xfail."""

import pytest

from fixtures.baselines import BaselineStore
from fixtures.devices import Device
from fixtures.measurement import Bench, Observation
from fixtures.metrics import PEAK_MEMORY
from fixtures.published import Published, published_of
from fixtures.report.record import RunRecord
from fixtures.scenarios import Scenario
from fixtures.techniques.registry import Claim


def _figures(
    claim: Claim, scenario: Scenario, bench: Bench, run: RunRecord
) -> tuple[float, float] | None:
    """The technique's figure and that of the one it is compared with, as far as both are known."""
    other = scenario.beside(claim.than)
    if claim.metric is PEAK_MEMORY:
        mine = bench.seen(scenario)
        # A worker may not have met the reference yet; every other comparison shares its worker.
        theirs = bench.active(other) if other.is_reference else bench.seen(other)
        if not (mine and theirs and mine.peak_bytes and theirs.peak_bytes):
            return None
        return mine.peak_bytes[claim.component], theirs.peak_bytes[claim.component]
    mine_s = run.scenarios[scenario.id].speedup
    if mine_s is None:
        return None
    if other.is_reference:
        return 1 / mine_s.estimate, 1.0
    theirs_record = run.scenarios.get(other.id)
    if theirs_record is None or theirs_record.speedup is None:
        return None
    return 1 / mine_s.estimate, 1 / theirs_record.speedup.estimate


def test_documented_claims(
    scenario: Scenario, observed: Observation, bench: Bench, run_record: RunRecord
) -> None:
    """Every claim of the technique's documents, with this machine's figures."""
    claims = scenario.technique.claims
    if not claims:
        pytest.skip("its documents claim nothing that is measured here")
    failing, unknown = [], []
    for claim in claims:
        figures = _figures(claim, scenario, bench, run_record)
        if figures is None:
            unknown.append(str(claim))
            run_record.claims["not measured"] += 1
            continue
        mine, theirs = figures
        held = claim.metric.is_worse(theirs, than=mine)
        run_record.claims["hold" if held else "do not hold here"] += 1
        if not held:
            text = PEAK_MEMORY.format if claim.metric is PEAK_MEMORY else "{:.3f}".format
            failing.append(f"claims {claim}, has {text(mine)} against {text(theirs)}")
    if failing:
        sentence = f"{scenario.id}: does not hold on this device: {'; '.join(failing)}"
        run_record.note(sentence)
        pytest.xfail(sentence)
    if len(unknown) == len(claims):
        pytest.skip(f"not measured in this run: {'; '.join(unknown)}")


def test_published_figures(
    scenario: Scenario,
    observed: Observation,
    device: Device,
    store: BaselineStore,
    run_record: RunRecord,
) -> None:
    """Memory that others published: documented, ours, and what a GPU's baseline holds."""
    published = published_of(scenario.id)
    if not published:
        pytest.skip("nobody published a memory figure of it")
    broken = []
    for figure in published:
        if figure.component not in observed.peak_bytes:
            continue
        ours_bytes = observed.peak_bytes[figure.component]
        name = "simulated" if device.name == "simulated" else device.key
        figures = {name: float(ours_bytes)}
        figures.update(_measured_elsewhere(figure, scenario, device, store))
        sentence = figure.compared(figures)
        run_record.note(sentence)
        if figure.relation == "at most":
            held = figure.holds(ours_bytes)
            run_record.claims["hold" if held else "do not hold here"] += 1
            if not held:
                broken.append(sentence)
    if broken:
        pytest.xfail("does not hold on this device: " + "; ".join(broken))


def _measured_elsewhere(
    figure: Published, scenario: Scenario, device: Device, store: BaselineStore
) -> dict[str, float]:
    """What the baselines of real accelerators hold, by device key."""
    found = {}
    for folder in sorted(store.folder.glob("nvidia-*")):
        entry = store.entry(folder.name, scenario.workload.name, scenario.technique.id)
        if folder.name != device.key and entry and figure.component in entry.peak_memory_bytes:
            found[folder.name] = float(entry.peak_memory_bytes[figure.component])
    return found
