"""Does nothing wrong, whatever its figures are: no leak, no race, no state left behind."""

from fixtures.metrics import faults
from fixtures.metrics.case import Case
from fixtures.records.run import ScenarioRecord
from fixtures.suite.judging import Judge


def test_faults(observed: ScenarioRecord, case: Case, judge: Judge) -> None:
    """A switch that stays on would change what the next scenario measures."""
    judge(*faults.METRIC.judge(case, observed))
