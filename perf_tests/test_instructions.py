"""Executes no more instructions than its baseline, by groups (--perf-instructions)."""

import pytest

from fixtures.metrics import instructions
from fixtures.records.run import ScenarioRecord
from fixtures.suite.judging import Judge
from fixtures.verdicts.case import Case

pytestmark = pytest.mark.instructions


def test_instructions(counted: ScenarioRecord, case: Case, judge: Judge) -> None:
    """Counts are the same under any load, so more work is seen where no clock sees it."""
    judge(*instructions.METRIC.judge(case, counted))
