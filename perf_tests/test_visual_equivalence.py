"""Draws what fp32 draws: SSIM with the fp32 image of the same seed, made in the same run."""

from fixtures.metrics import images
from fixtures.metrics.case import Case
from fixtures.records.run import ScenarioRecord
from fixtures.suite.judging import Judge


def test_visual_equivalence(drawn: ScenarioRecord, case: Case, judge: Judge) -> None:
    """The worst image of a batch counts; NaN, black and flat are broken before that.

    Tiled images must not show where the tiles meet, either. The fp32 image itself must be that of
    the frozen reference, and that of the baseline.
    """
    judge(*images.METRIC.judge(case, drawn))
