"""No hungrier than its baseline allows, as a whole and in each component."""

import pytest

from fixtures.devices import Device
from fixtures.records.run import RunRecord, ScenarioRecord
from fixtures.suite.plugin import Judge
from fixtures.verdicts import Case, judge_peak_memory


def test_peak_memory(
    observed: ScenarioRecord, device: Device, case: Case, run_record: RunRecord, judge: Judge
) -> None:
    """The peak is counted over one warm call, weights included."""
    if not observed.component_peak_bytes:
        reason = "not judged: compiled code allocates past the ledger of tensor storages"
        run_record.note(f"{observed.id}: peak memory {reason}")
        pytest.skip(reason)
    judge(judge_peak_memory(case, observed.component_peak_bytes, device.memory_source))
