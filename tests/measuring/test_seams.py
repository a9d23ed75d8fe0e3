"""Seams between tiles: the blended tiles of diffusers pass, tiles without overlap do not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fixtures.devices.cpu import CpuDevice
from fixtures.metrics.images import SEAM_LIMIT, judge_seams
from fixtures.records.outcome import Outcome
from fixtures.techniques import CATALOGUE
from fixtures.techniques.vae import tile_borders_px
from fixtures.verdicts.case import Case
from fixtures.verdicts.image_checks import seam_contrast
from fixtures.workloads import WORKLOADS

CASE = Case("storybook-256-vae_tiling", None, {})


def test_a_line_through_the_image_is_a_seam() -> None:
    smooth = np.random.default_rng(0).random((1, 16, 16, 3)) * 0.1 + 0.4
    broken = smooth.copy()
    broken[:, 8:] += 0.4
    assert seam_contrast(smooth, smooth, [8]) == pytest.approx(1.0)
    assert seam_contrast(broken, smooth, [8]) > SEAM_LIMIT
    assert seam_contrast(broken, smooth, [4]) == pytest.approx(1.0)


def test_without_a_border_inside_the_image_nothing_can_be_said() -> None:
    image = np.random.default_rng(0).random((1, 16, 16, 3))
    with pytest.raises(ValueError, match="no tile border"):
        seam_contrast(image, image, [0, 16, 99])


@pytest.mark.parametrize(
    ("contrast", "outcome"),
    [
        (SEAM_LIMIT, Outcome.PASS),
        (math.nextafter(SEAM_LIMIT, 2), Outcome.REGRESSION),
        (math.nan, Outcome.REGRESSION),
    ],
)
def test_the_limit_passes_and_anything_above_does_not(contrast: float, outcome: Outcome) -> None:
    assert judge_seams(CASE, contrast).outcome is outcome


def test_blended_tiles_pass_and_tiles_without_overlap_fail() -> None:
    workload = WORKLOADS["storybook-256"]
    workload = replace(workload, call=replace(workload.call, steps=2))
    device = CpuDevice()
    with CATALOGUE["fp32"].applied(workload, device) as pipeline:
        untiled = workload.draw(pipeline)
    with CATALOGUE["vae_tiling"].applied(workload, device) as pipeline:
        blended = workload.draw(pipeline)
        borders = tile_borders_px(pipeline, workload)
        pipeline.vae.tile_overlap_factor = 0.0
        hard = workload.draw(pipeline)
        hard_borders = tile_borders_px(pipeline, workload)
    assert borders == [96, 192]
    assert hard_borders == [128]
    assert judge_seams(CASE, seam_contrast(blended, untiled, borders)).outcome is Outcome.PASS
    contrast = seam_contrast(hard, untiled, hard_borders)
    assert judge_seams(CASE, contrast).outcome is Outcome.REGRESSION, contrast
