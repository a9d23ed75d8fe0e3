"""Does no more work than its baseline: operations and the dtypes they compute in, exactly."""

from fixtures.records.metrics import COUNTS
from fixtures.records.run import ScenarioRecord
from fixtures.scenarios import Scenario
from fixtures.suite.plugin import Judge
from fixtures.verdicts import Case, judge_counts


def test_counters(scenario: Scenario, observed: ScenarioRecord, case: Case, judge: Judge) -> None:
    """There is no noise in a count: one operation more is a regression."""
    if not observed.counts:
        compiled = "operations of compiled code cannot be counted"
        reason = compiled if scenario.technique.compiled else "no operation was counted"
        judge(case.unmeasured(COUNTS, reason, case.entry and case.entry.counts))
    judge(judge_counts(case, observed.counts, observed.origins))
