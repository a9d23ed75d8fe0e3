"""Does no more work than its baseline: operations and the dtypes they compute in, exactly."""

from fixtures.metrics.case import Case
from fixtures.metrics.counts import COUNTS
from fixtures.records.run import ScenarioRecord
from fixtures.suite.judging import Judge


def test_counters(observed: ScenarioRecord, case: Case, judge: Judge) -> None:
    """There is no noise in a count: one operation more is a regression."""
    judge(*COUNTS.judge(case, observed))
