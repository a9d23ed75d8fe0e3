"""No slower than its baseline allows, measured in pairs with the fp32 reference."""

from fixtures.records.outcome import Verdict
from fixtures.records.run import ScenarioRecord
from fixtures.suite.plugin import Judge
from fixtures.verdicts import Case, judge_absolute_latency


def test_latency(timed: tuple[ScenarioRecord, Verdict], case: Case, judge: Judge) -> None:
    """The ratio to the reference is judged as it was decided, and the absolute time."""
    record, ratio = timed
    judge(ratio, judge_absolute_latency(case, record.timings[0].judged_ms))
