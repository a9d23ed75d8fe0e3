"""No hungrier than its baseline allows, as a whole and in each component."""

import pytest

from fixtures.devices import Device
from fixtures.measurement import Bench, Observation
from fixtures.plugin import Judge
from fixtures.recording import put_peaks
from fixtures.report.record import RunRecord, ScenarioRecord
from fixtures.scenarios import Scenario
from fixtures.verdicts import Case, judge_peak_memory


def test_peak_memory(
    scenario: Scenario,
    observed: Observation,
    bench: Bench,
    device: Device,
    case: Case,
    record: ScenarioRecord,
    run_record: RunRecord,
    judge: Judge,
) -> None:
    """The peak is counted over one warm call, weights included."""
    if not observed.peak_bytes:
        reason = "unjudged: compiled code allocates past the ledger of tensor storages"
        run_record.note(f"{scenario.id}: peak memory {reason}")
        pytest.skip(reason)
    put_peaks(record, observed, bench.active(scenario.reference))
    judge(judge_peak_memory(case, observed.peak_bytes, device.memory_source))
