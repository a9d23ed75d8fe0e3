"""Draws what fp32 draws: SSIM with the fp32 image of the same seed, made in the same run."""

from fixtures.records.outcome import Verdict
from fixtures.records.run import ScenarioRecord
from fixtures.scenarios import Scenario
from fixtures.suite.plugin import Judge
from fixtures.verdicts import Case, judge_images, judge_seams


def test_visual_equivalence(
    scenario: Scenario,
    drawn: ScenarioRecord,
    fp32_differences: list[Verdict],
    class_verdicts: list[Verdict],
    seam: float | None,
    case: Case,
    judge: Judge,
) -> None:
    """The worst image of a batch counts; NaN, black and flat are broken before that.

    What is drawn must stay what it is: subject, place and main colour, where a classifier can tell.
    Tiled images must not show where the tiles meet, either. The fp32 image itself must be that of
    the frozen reference, and that of the baseline.
    """
    ssim = float("nan") if drawn.ssim is None else drawn.ssim
    verdicts = [
        judge_images(case, ssim, scenario.technique.min_ssim(scenario.workload.name)),
        *fp32_differences,
        *class_verdicts,
    ]
    if seam is not None:
        verdicts.append(judge_seams(case, seam))
    judge(*verdicts)
