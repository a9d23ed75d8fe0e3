"""No slower than its baseline allows, measured in pairs with the frozen reference."""

from fixtures.records.outcome import Verdict
from fixtures.suite.judging import Judge


def test_latency(timed: list[Verdict], judge: Judge) -> None:
    """The ratio to the reference, and the time itself."""
    judge(*timed)
