"""Peak memory stays within its baseline's tolerance, as a whole and in each component."""

from fixtures.metrics import peak_memory
from fixtures.records.run import RunRecord, ScenarioRecord
from fixtures.scenarios import Scenario
from fixtures.suite.cases import Cases
from fixtures.suite.judging import Judge
from fixtures.verdicts.case import Case


def test_peak_memory(
    scenario: Scenario,
    observed: ScenarioRecord,
    cases: Cases,
    case: Case,
    run_record: RunRecord,
    judge: Judge,
) -> None:
    """The peak is counted over one warm call, weights included.

    On a device of which nothing is stored, the simulated one's figure says what to expect.
    """
    if not case.device_is_known and (note := cases.beside_simulated(scenario, observed)):
        run_record.note(note)
    judge(*peak_memory.METRIC.judge(case, observed))
