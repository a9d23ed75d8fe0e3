"""Peak memory stays within its baseline's tolerance, as a whole and in each component."""

from fixtures.metrics import peak_memory
from fixtures.metrics.case import Case
from fixtures.records.run import ScenarioRecord
from fixtures.suite.judging import Judge


def test_peak_memory(observed: ScenarioRecord, case: Case, judge: Judge) -> None:
    """The peak is counted over one warm call, weights included."""
    judge(*peak_memory.METRIC.judge(case, observed))
