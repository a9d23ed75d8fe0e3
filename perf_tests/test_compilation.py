"""Compiles to as many graphs, breaks and kernels as its baseline (-m compilation)."""

import pytest

from fixtures.catalogue.matrix import Scenario
from fixtures.commands.refresh import differences
from fixtures.metrics import compilation
from fixtures.metrics.case import Case
from fixtures.records.baselines import Entry
from fixtures.records.run import ScenarioRecord
from fixtures.suite.judging import Judge
from fixtures.suite.session import PerfSession

pytestmark = pytest.mark.compilation


def test_compilation(compiled: ScenarioRecord, case: Case, judge: Judge) -> None:
    """A graph that breaks, or is compiled anew for every prompt, costs more than it saves."""
    judge(*compilation.METRIC.judge(case, compiled))


@pytest.mark.refresh
def test_refresh_compilation(
    scenario: Scenario, case: Case, perf: PerfSession, recompiled: Entry
) -> None:
    """Runs with -m compilation and --perf-update-baselines alone: measure a new entry's part."""
    perf.run.note(differences(scenario, case.entry, recompiled))
    perf.stage(scenario, recompiled)
