"""Draws what fp32 draws: SSIM with the fp32 picture of the same seed, made in the same run."""

from fixtures.measurement import Bench, Observation, ScenarioError
from fixtures.metrics import SSIM
from fixtures.plugin import Judge
from fixtures.report.record import ScenarioRecord
from fixtures.scenarios import Scenario
from fixtures.verdicts import Case, Verdict, judge_pictures


def test_visual_equivalence(
    scenario: Scenario,
    observed: Observation,
    bench: Bench,
    case: Case,
    record: ScenarioRecord,
    judge: Judge,
) -> None:
    """Of a batch the worst picture counts; NaN, black and flat pictures are broken before that."""
    min_ssim = scenario.technique.min_ssim(scenario.workload.name)
    try:
        record.ssim = bench.ssim(scenario)
        verdict = judge_pictures(case, record.ssim, min_ssim)
    except ScenarioError as error:
        verdict = Verdict(scenario.id, SSIM.name, error.outcome, str(error))
    judge(verdict)
