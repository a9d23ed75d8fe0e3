"""Does no more work than its baseline: operations and the dtypes they compute in, exactly."""

from fixtures.metrics.counts import COUNTS
from fixtures.records.run import ScenarioRecord
from fixtures.suite.judging import Judge
from fixtures.verdicts.case import Case


def test_counters(observed: ScenarioRecord, case: Case, judge: Judge) -> None:
    """There is no noise in a count: one operation more is a regression."""
    judge(*COUNTS.judge(case, observed))
