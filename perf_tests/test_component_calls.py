"""Calls each component as often as its baseline, with batches as large."""

from fixtures.metrics.case import Case
from fixtures.metrics.counts import COMPONENTS
from fixtures.records.run import ScenarioRecord
from fixtures.suite.judging import Judge


def test_component_calls(observed: ScenarioRecord, case: Case, judge: Judge) -> None:
    """Guidance that is silently off halves the work, and would pass for a gain."""
    judge(*COMPONENTS.judge(case, observed))
