"""Does no more on the host than its baseline: Python between the operations, and the runtime."""

from fixtures.metrics.case import Case
from fixtures.metrics.counts import HOST
from fixtures.records.run import ScenarioRecord
from fixtures.suite.judging import Judge


def test_host_calls(observed: ScenarioRecord, case: Case, judge: Judge) -> None:
    """Calls repeat exactly, so a version check in a `forward` is seen where no clock sees it."""
    judge(*HOST.judge(case, observed))
