"""The technique really is in effect, and leaving it restores everything."""

from fixtures.catalogue.matrix import Scenario
from fixtures.records.outcome import Verdict
from fixtures.suite.judging import Judge


def test_activation(scenario: Scenario, activation: Verdict, judge: Judge) -> None:
    """A technique that silently does nothing has SSIM 1.0 and must not pass for it."""
    judge(activation)
