"""Similarity: its limits, what is impossible, and that a wrong image is never accepted."""

from __future__ import annotations

import math

import pytest

from fixtures.metrics.images import (
    FROZEN_DIFFERENCE,
    SEAM_LIMIT,
    SIDES_SSIM,
    SSIM_ROUNDING,
    judge_classes,
    judge_difference,
    judge_images,
    judge_seams,
    judge_similarity,
)
from fixtures.records.outcome import Outcome, Verdict
from fixtures.verdicts.case import SideCase
from tests.metrics.cases import NEWER, SCENARIO, case
from tests.support.runs import entry

SIDES = SideCase(SCENARIO, entry(), NEWER)


@pytest.mark.parametrize(
    ("ssim", "outcome"),
    [
        (1.0, Outcome.PASS),
        (0.98, Outcome.PASS),
        (math.nextafter(0.98, 0), Outcome.REGRESSION),
        (0.0, Outcome.REGRESSION),
        (-0.5, Outcome.REGRESSION),
        (-1.0, Outcome.REGRESSION),
        (1 + SSIM_ROUNDING / 2, Outcome.PASS),
        (1 + SSIM_ROUNDING * 2, Outcome.BROKEN),
        (-2.0, Outcome.BROKEN),
        (math.inf, Outcome.BROKEN),
        (-math.inf, Outcome.BROKEN),
        (math.nan, Outcome.BROKEN),
    ],
)
def test_similarity_is_judged_by_its_minimum(ssim: float, outcome: Outcome) -> None:
    assert judge_images(case(), ssim, 0.98).outcome is outcome
    assert judge_similarity(SIDES, ssim, 0.98).outcome is outcome


def test_images_need_no_baseline() -> None:
    new = case(entry=None)
    assert judge_images(new, 0.99, 0.98).outcome is Outcome.PASS
    verdict = judge_images(new, 0.9, 0.98)
    assert verdict.outcome is Outcome.REGRESSION
    assert "no baseline to compare with" in verdict.sentence


def test_a_wrong_image_names_the_suspects_and_no_way_to_accept_it() -> None:
    sentence = judge_images(case(), 0.5, 0.98).sentence
    for part in (SCENARIO, "0.5000", "limit 0.9800", "baseline has 0.9950", "torch 2.12.0"):
        assert part in sentence
    assert "refresh" not in sentence


@pytest.mark.parametrize(
    ("verdict", "detail"),
    [
        (judge_images(case(), 0.5, 0.98), "0.5000 (limit 0.9800)"),
        (judge_images(case(), 0.99, 0.98), "0.9900 (limit 0.9800)"),
        (judge_similarity(SIDES, 0.5, 0.98), "0.5000 (limit 0.9800)"),
        (judge_seams(case(), 2 * SEAM_LIMIT), "x3.000 (limit x1.500)"),
        (judge_difference(case(), 2 / 255, 1 / 255, "its"), "2.00/255 (limit 1.00/255)"),
    ],
    ids=["wrong", "right", "sides", "seam", "difference"],
)
def test_a_row_shows_the_figure_and_its_limit(verdict: Verdict, detail: str) -> None:
    assert verdict.detail == detail


# The fp32 image


@pytest.mark.parametrize(
    ("difference", "outcome"),
    [
        (0.0, Outcome.PASS),
        (FROZEN_DIFFERENCE, Outcome.PASS),
        (math.nextafter(FROZEN_DIFFERENCE, 1), Outcome.REGRESSION),
        (1.0, Outcome.REGRESSION),
        (math.inf, Outcome.REGRESSION),
        (math.nan, Outcome.REGRESSION),
    ],
)
def test_a_difference_is_judged_by_its_limit(difference: float, outcome: Outcome) -> None:
    verdict = judge_difference(case(), difference, FROZEN_DIFFERENCE, "the frozen reference's")
    assert verdict.outcome is outcome
    assert verdict.limit == FROZEN_DIFFERENCE
    assert verdict.baseline is None


def test_a_wrong_fp32_image_names_the_suspects_and_no_way_to_accept_it() -> None:
    verdict = judge_difference(case(), 3 / 255, 1 / 255, "the baseline's")
    assert verdict.sentence == (
        f"{SCENARIO}: the fp32 image differs from the baseline's by up to 3.00/255 (limit "
        "1.00/255); changed since the baseline: torch 2.12.0 -> 2.13.0"
    )
    right = judge_difference(case(), 0.0, 1 / 255, "the baseline's").sentence
    assert right.endswith("(limit 1.00/255)")
    new = judge_difference(case(entry=None), 3 / 255, 1 / 255, "the baseline's").sentence
    assert new.endswith("(limit 1.00/255)")


# Both sides of a comparison


@pytest.mark.parametrize(
    ("ssim", "min_ssim", "outcome"),
    [
        (SIDES_SSIM, 1.0, Outcome.PASS),
        (math.nextafter(SIDES_SSIM, 0), 1.0, Outcome.REGRESSION),
        (0.95, 0.95, Outcome.PASS),
        (math.nextafter(0.95, 0), 0.95, Outcome.REGRESSION),
    ],
)
def test_both_sides_draw_alike_as_far_as_the_technique_itself_must(
    ssim: float, min_ssim: float, outcome: Outcome
) -> None:
    verdict = judge_similarity(SIDES, ssim, min_ssim)
    assert verdict.outcome is outcome
    assert (verdict.baseline, verdict.limit) == (1.0, min(min_ssim, SIDES_SSIM))


WHITE_ON_MARS = {"subject": "astronaut", "place": "mars", "main colour": "white"}
RED_ON_MARS = {**WHITE_ON_MARS, "main colour": "red"}
RED_AT_SEA = {**RED_ON_MARS, "place": "sea"}


def test_an_image_must_show_what_the_fp32_image_shows() -> None:
    verdict = judge_classes(case(entry=None), [WHITE_ON_MARS], [WHITE_ON_MARS])
    assert verdict.outcome is Outcome.PASS
    assert (verdict.measured, verdict.limit) == (3, 3)


@pytest.mark.parametrize(
    ("shown", "kept", "words"),
    [
        ([RED_ON_MARS], 2, "main colour red where fp32's shows white"),
        (
            [RED_AT_SEA],
            1,
            "place sea where fp32's shows mars; the image shows main colour red where fp32's "
            "shows white",
        ),
    ],
)
def test_another_class_is_a_regression_that_no_command_accepts(
    shown: list[dict[str, str]], kept: int, words: str
) -> None:
    verdict = judge_classes(case(), shown, [WHITE_ON_MARS])
    assert verdict.outcome is Outcome.REGRESSION
    assert (verdict.measured, verdict.limit) == (kept, 3)
    assert f"the image shows {words}" in verdict.sentence
    assert "torch 2.12.0" in verdict.sentence
    assert "accept" not in verdict.sentence


def test_one_image_of_a_batch_must_not_hide_among_the_others() -> None:
    wanted = [WHITE_ON_MARS] * 3
    verdict = judge_classes(case(), [WHITE_ON_MARS, RED_ON_MARS, WHITE_ON_MARS], wanted)
    assert verdict.outcome is Outcome.REGRESSION
    assert "image 2 of 3 shows main colour red where fp32's shows white" in verdict.sentence
    every = judge_classes(case(), [RED_AT_SEA] * 3, wanted).sentence
    assert "image 2 of 3 shows place sea where fp32's shows mars, and 3 more" in every
    with pytest.raises(ValueError, match="argument 2 is longer"):
        judge_classes(case(), [WHITE_ON_MARS], wanted)
