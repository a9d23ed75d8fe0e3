"""Saves what its docs say it saves; a claim that does not hold here is an xfail."""

import pytest

from fixtures.devices import Device
from fixtures.devices.kinds import find_kind, is_of_hardware
from fixtures.records.baseline_store import BaselineStore
from fixtures.records.run import RunRecord, ScenarioRecord
from fixtures.scenarios import Scenario
from fixtures.suite.claims import FAILS, HOLDS, NOT_COMPARED, Claims
from fixtures.techniques.published import Published, published_of

pytestmark = pytest.mark.last


def test_documented_claims(
    scenario: Scenario, observed: ScenarioRecord, claims: Claims, run_record: RunRecord
) -> None:
    """Every claim of the technique's docs, with this machine's figures."""
    if not scenario.technique.claims:
        pytest.skip("its docs claim nothing that is measured here")
    compared = [claims.compared(claim, scenario) for claim in scenario.technique.claims]
    for one in compared:
        run_record.count_claim(one.outcome)
    failing = [one.sentence for one in compared if one.outcome == FAILS]
    if failing:
        sentence = f"{scenario.id}: does not hold on this device: {'; '.join(failing)}"
        run_record.note(sentence)
        pytest.xfail(sentence)
    if all(one.outcome == NOT_COMPARED for one in compared):
        pytest.skip(f"not compared: {'; '.join(one.sentence for one in compared)}")


def test_published_figures(
    scenario: Scenario,
    observed: ScenarioRecord,
    device: Device,
    store: BaselineStore,
    run_record: RunRecord,
) -> None:
    """Memory that others published: documented, ours, and what a GPU's baseline holds."""
    published = published_of(scenario.id)
    if not published:
        pytest.skip("no memory figure was published for it")
    failing = []
    for figure in published:
        if figure.component not in observed.component_peak_bytes:
            continue
        ours_bytes = observed.component_peak_bytes[figure.component]
        figures = {find_kind(device.name).key or device.key: float(ours_bytes)}
        figures.update(_measured_elsewhere(figure, scenario, device, store))
        sentence = figure.compared(figures)
        run_record.note(sentence)
        if figure.relation == "at most":
            holds = figure.holds(ours_bytes)
            run_record.count_claim(HOLDS if holds else FAILS)
            if not holds:
                failing.append(sentence)
    if failing:
        pytest.xfail("does not hold on this device: " + "; ".join(failing))


def _measured_elsewhere(
    figure: Published, scenario: Scenario, device: Device, store: BaselineStore
) -> dict[str, float]:
    """What the baselines of real accelerators hold, by device key."""
    found = {}
    for folder in sorted(path for path in store.folder.glob("*/") if is_of_hardware(path.name)):
        entry = store.entry(folder.name, scenario.stored_as, scenario.technique.id)
        if folder.name != device.key and entry and figure.component in entry.component_peak_bytes:
            found[folder.name] = float(entry.component_peak_bytes[figure.component])
    return found
