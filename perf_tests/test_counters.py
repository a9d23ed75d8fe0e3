"""Does no more work than its baseline: operations and the dtypes they compute in, exactly."""

import pytest

from fixtures.records.run import RunRecord, ScenarioRecord
from fixtures.suite.plugin import Judge
from fixtures.verdicts import Case, judge_counts


def test_counters(
    observed: ScenarioRecord, case: Case, run_record: RunRecord, judge: Judge
) -> None:
    """There is no noise in a count: one operation more is a regression."""
    if not observed.counts:
        reason = "not judged: this device, or compiled code on it, counts no operations"
        run_record.note(f"{observed.id}: counts {reason}")
        pytest.skip(reason)
    judge(judge_counts(case, observed.counts, observed.origins))
