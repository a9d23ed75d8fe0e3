"""No scenario without an entry, no entry without a scenario; and the explicit refresh of both."""

from collections.abc import Iterator

import pytest

from fixtures.catalogue.matrix import Scenario, workload_of
from fixtures.catalogue.techniques import CATALOGUE
from fixtures.catalogue.workloads import WORKLOADS
from fixtures.catalogue.workloads.twins import twins
from fixtures.commands.refresh import differences, record_entry
from fixtures.metrics.case import Case
from fixtures.records.timing import Timing
from fixtures.suite.session import PerfSession

pytestmark = pytest.mark.last
REMEDY = "delete it, or name what declares it with --perf-catalogue"


def test_scenario_has_an_entry(scenario: Scenario, case: Case, missing_entry: str | None) -> None:
    """A scenario of which nothing is stored cannot regress."""
    if not case.device_is_known:
        pytest.skip(f"not judged: {case.nothing_recorded}")
    if missing_entry:
        pytest.fail(missing_entry, pytrace=False)


def test_entry_has_a_scenario(perf: PerfSession) -> None:
    """An entry that nothing is compared with guards nothing."""
    key = perf.device.key
    folder = perf.store.folder / key
    orphans = []
    # Of twins, which this run need not have declared, compiled code is stored.
    of_twins = {twin.name: twin for twin in twins()}
    for path in sorted(folder.glob("*.json")):
        name = workload_of(path.stem)
        workload = WORKLOADS.get(name) or of_twins.get(name)
        if workload is None and name == path.stem:
            pytest.fail(f"{path} is the baseline of no workload: {REMEDY}", pytrace=False)
        # Of other weights their configurations decide, which need not be here.
        techniques = {
            technique.id
            for technique in CATALOGUE
            if workload is None or technique.applies_to(workload)
        }
        baseline = perf.store.baseline(key, path.stem)
        stale = sorted(set(baseline.scenarios if baseline else ()) - techniques)
        orphans += [f"'{name}' in {path}" for name in stale]
    if orphans:
        pytest.fail(f"no scenario has the entry {', '.join(orphans)}: {REMEDY}", pytrace=False)


@pytest.mark.refresh
def test_refresh(
    scenario: Scenario, perf: PerfSession, case: Case, samples: Iterator[Timing]
) -> None:
    """Runs alone, and only with --perf-update-baselines: measure a new entry."""
    entry = record_entry(
        scenario,
        perf.measurements.observations,
        perf.run,
        perf.measurements.record(scenario),
        reason=perf.settings.reason,
        samples=samples,
        case=case,
    )
    perf.run.note(differences(scenario, case.entry, entry))
    perf.stage(scenario, entry)
