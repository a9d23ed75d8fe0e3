"""Does no more work than its baseline: operations and the dtypes they compute in, exactly."""

import pytest

from fixtures.measurement import Observation
from fixtures.plugin import Judge
from fixtures.recording import put_work
from fixtures.report.record import RunRecord, ScenarioRecord
from fixtures.verdicts import Case, judge_counters


def test_counters(
    observed: Observation,
    case: Case,
    record: ScenarioRecord,
    run_record: RunRecord,
    judge: Judge,
) -> None:
    """There is no noise in a count: one operation more is a regression."""
    if not observed.counters:
        reason = "unjudged: this device, or compiled code on it, has no census of operations"
        run_record.note(f"{observed.scenario}: counters {reason}")
        pytest.skip(reason)
    put_work(record, observed)
    judge(judge_counters(case, observed.counters, observed.origins))
