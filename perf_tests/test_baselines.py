"""No scenario without an entry, no entry without a scenario; and the explicit refresh of both."""

from collections.abc import Callable

import pytest

from fixtures import refresh
from fixtures.baselines import BaselineError, BaselineStore
from fixtures.devices import Device
from fixtures.measurement import Bench, ScenarioError
from fixtures.report.record import RunRecord
from fixtures.rounds import Timing
from fixtures.scenarios import Scenario, scenarios
from fixtures.settings import Settings
from fixtures.verdicts import Case


def test_scenario_has_an_entry(
    scenario: Scenario, device: Device, store: BaselineStore, case: Case
) -> None:
    """A scenario that nothing is remembered of cannot regress."""
    try:
        entry = store.entry(device.key, scenario.workload.name, scenario.technique.id)
    except BaselineError as error:
        pytest.fail(str(error), pytrace=False)
    if entry is None:
        path = store.path(device.key, scenario.workload.name)
        pytest.fail(
            f"{scenario.id}: no entry in {path}; record it with: {case.refresh}",
            pytrace=False,
        )


def test_entry_has_a_scenario(device: Device, store: BaselineStore, settings: Settings) -> None:
    """An entry that nothing is compared with guards nothing."""
    folder = store.folder / device.key
    orphans = []
    for path in sorted(folder.glob("*.json")):
        known = {s.technique.id for s in scenarios([path.stem])}
        try:
            baseline = store.baseline(device.key, path.stem)
        except BaselineError as error:
            pytest.fail(str(error), pytrace=False)
        stale = sorted(set(baseline.entries if baseline else ()) - known)
        orphans += [f"'{name}' in {path}" for name in stale]
    if orphans:
        pytest.fail(f"no scenario has the entry {', '.join(orphans)}: delete it", pytrace=False)


def test_refresh(
    scenario: Scenario,
    device: Device,
    bench: Bench,
    store: BaselineStore,
    settings: Settings,
    run_record: RunRecord,
    further_look: Callable[[], Timing],
) -> None:
    """Runs alone, and only with --perf-update-baselines: measure, and stage the new entry."""
    try:
        entry = refresh.record(scenario, device, settings.reason, look=further_look, bench=bench)
    except ScenarioError as error:
        pytest.fail(str(error), pytrace=False)
    names = (device.key, scenario.workload.name, scenario.technique.id)
    run_record.note(refresh.differences(scenario, store.entry(*names), entry))
    store.stage(*names, entry)
