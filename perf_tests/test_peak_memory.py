"""Peak memory stays within its baseline's tolerance, as a whole and in each component."""

from fixtures.devices import Device
from fixtures.records.metrics import PEAK_MEMORY
from fixtures.records.run import RunRecord, ScenarioRecord
from fixtures.scenarios import Scenario
from fixtures.suite.cases import Cases
from fixtures.suite.plugin import Judge
from fixtures.verdicts import Case, judge_peak_memory


def test_peak_memory(
    scenario: Scenario,
    observed: ScenarioRecord,
    device: Device,
    cases: Cases,
    case: Case,
    run_record: RunRecord,
    judge: Judge,
) -> None:
    """The peak is counted over one warm call, weights included.

    On a device of which nothing is stored, the simulated one's figure says what to expect.
    """
    if not observed.component_peak_bytes:
        compiled = "compiled code allocates past the ledger of tensor storages"
        reason = compiled if scenario.technique.compiled else "no peak was measured"
        judge(case.unmeasured(PEAK_MEMORY, reason, case.entry and case.entry.component_peak_bytes))
    if not case.device_is_known and (note := cases.beside_simulated(scenario, observed)):
        run_record.note(note)
    judge(judge_peak_memory(case, observed.component_peak_bytes, device.memory_source))
