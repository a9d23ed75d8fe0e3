"""Does no more work than its baseline: operations and the dtypes they compute in, exactly."""

from fixtures.records.metrics import COUNTS
from fixtures.records.run import ScenarioRecord
from fixtures.suite.plugin import Judge
from fixtures.verdicts import Case, judge_counts


def test_counters(observed: ScenarioRecord, case: Case, judge: Judge) -> None:
    """There is no noise in a count: one operation more is a regression."""
    if not observed.counts:
        reason = "this device, or compiled code on it, counts no operations"
        judge(case.not_judged(COUNTS, reason))
    judge(judge_counts(case, observed.counts, observed.origins))
