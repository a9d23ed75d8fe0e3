"""Images: limits of each measure, what is impossible, and that a wrong image is never accepted."""

from __future__ import annotations

import colorsys
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fixtures.metrics import images as module
from fixtures.metrics.image_limits import NONE, Limits, Variation, limits
from fixtures.metrics.images import (
    MEASURES,
    NO_FLIP,
    SSIM_ROUNDING,
    UNCALIBRATED,
    judge_images,
    judge_likeness,
)
from fixtures.metrics.likeness import has_flip, likeness
from fixtures.records.baselines import read_baseline
from fixtures.records.images import FP32, FROZEN, STORED, Images, Likeness, as_bytes, decoded
from fixtures.records.outcome import Outcome, Verdict
from fixtures.records.run import ScenarioRecord
from fixtures.records.software import installation
from fixtures.settings import REPOSITORY
from tests.metrics.cases import SCENARIO, case, side_case
from tests.support.runs import entry, scenario_record

EQUAL = Likeness(1.0, 0.0, 0.0, 0.0, 0.0)
LIMIT = limits(NONE, STORED)
needs_flip = pytest.mark.skipif(not has_flip(), reason="flip-evaluator is not installed")


@pytest.mark.parametrize(
    ("ssim", "outcome"),
    [
        (1.0, Outcome.PASS),
        (0.98, Outcome.PASS),
        (math.nextafter(0.98, 0), Outcome.REGRESSION),
        (0.0, Outcome.REGRESSION),
        (-1.0, Outcome.REGRESSION),
        (1 + SSIM_ROUNDING / 2, Outcome.PASS),
        (1 + SSIM_ROUNDING * 2, Outcome.BROKEN),
        (-2.0, Outcome.BROKEN),
        (math.inf, Outcome.BROKEN),
        (math.nan, Outcome.BROKEN),
    ],
)
def test_similarity_is_judged_by_its_minimum(ssim: float, outcome: Outcome) -> None:
    for entry_or_none in (entry(), None):  # a baseline is not needed
        assert judge_images(case(entry=entry_or_none), ssim, 0.98).outcome is outcome


def test_a_wrong_image_names_the_suspects_and_no_way_to_accept_it() -> None:
    verdict = judge_images(case(), 0.5, 0.98)
    for part in (SCENARIO, "0.5000", "limit 0.9800", "baseline has 0.9950", "torch 2.12.0"):
        assert part in verdict.sentence
    assert "refresh" not in verdict.sentence
    assert verdict.detail == "0.5000 (limit 0.9800)"


# How far each image is from another one


def judged(whose: str = STORED, limit: Limits = LIMIT, **measures: Any) -> Verdict:
    """The verdict on an image that is equal but for these measures."""
    return judge_likeness(case(), [replace(EQUAL, **measures)], limit, whose)


@pytest.mark.parametrize("measure", MEASURES)
def test_each_measure_is_judged_by_its_own_limit(measure: str) -> None:
    most = LIMIT[measure]

    def of(value: float, limit: Limits = LIMIT) -> Verdict:
        return judged(STORED, limit, **{measure: value})

    for value in (0.0, most):
        assert of(value).outcome is Outcome.PASS
    for value in (math.nextafter(most, 1), 1.0, math.inf, math.nan):
        verdict = of(value)
        assert verdict.outcome is Outcome.REGRESSION
        assert verdict.metric == MEASURES[measure].name
        assert (verdict.baseline, verdict.limit) == (None, most)
    assert (
        of(1.0, {name: most for name, most in LIMIT.items() if name != measure}).outcome
        is Outcome.PASS
    )
    exact = {**LIMIT, measure: 0.0}
    assert of(0.0, exact).outcome is Outcome.PASS
    assert of(1e-9, exact).outcome is Outcome.REGRESSION


def test_the_fields_of_a_limit_are_the_measures() -> None:
    assert LIMIT.keys() == MEASURES.keys()
    assert {field.name for field in fields(Likeness)} == {*MEASURES, "ssim"}


def test_the_measure_that_is_furthest_beyond_speaks_and_the_others_are_named() -> None:
    images = [EQUAL, Likeness(0.5, 3 / 255, 1 / 255, 0.5, 0.01), replace(EQUAL, largest=2 / 255)]
    verdict = judge_likeness(case(), images, LIMIT, STORED)
    assert verdict.metric == "FLIP"
    assert verdict.sentence == (
        f"{SCENARIO}: image 2 of 3 differs from the baseline's: FLIP 0.500 (limit 0.030); also "
        "channel difference 1.00/255 (limit 0.50/255), image difference 3.00/255 (limit "
        "1.00/255); changed since the baseline: torch 2.12.0 -> 2.13.0; if it is meant, accept it "
        f"with: {case().refresh}"
    )
    right = judge_likeness(case(), [EQUAL], LIMIT, STORED).sentence
    assert right.startswith(f"{SCENARIO}: the image differs from the baseline's: ")
    assert "accept" not in right


@pytest.mark.parametrize("whose", [FP32, FROZEN])
def test_an_image_that_is_not_what_is_computed_names_the_suspects_and_no_way_to_accept_it(
    whose: str,
) -> None:
    verdict = judged(whose, flip=0.5)
    assert verdict.sentence == (
        f"{SCENARIO}: the image differs from {whose}: FLIP 0.500 (limit 0.030); changed since "
        "the baseline: torch 2.12.0 -> 2.13.0"
    )
    new = judge_likeness(case(entry=None), [replace(EQUAL, flip=0.5)], LIMIT, whose)
    assert new.sentence.endswith("FLIP 0.500 (limit 0.030)")


# What an SSIM of 0.99 lets through


def picture() -> Images:
    """What fp32 draws of storybook, as it is stored."""
    path = Path(REPOSITORY, "baselines", "cpu", "storybook.json")
    stored = read_baseline(path, device_key="cpu", workload="storybook")
    return decoded(stored.scenarios["fp32"].images)


def hue_turned(images: Images) -> Images:
    turned = [
        colorsys.hsv_to_rgb(hue + 5 / 360, saturation, value)
        for hue, saturation, value in (
            colorsys.rgb_to_hsv(*pixel) for pixel in images.reshape(-1, 3).tolist()
        )
    ]
    return np.array(turned, images.dtype).reshape(images.shape)


def with_block(images: Images) -> Images:
    images[:, 40:48, 40:48] = 1.0
    return images


DAMAGES: dict[str, tuple[Callable[[Images], Images], float]] = {
    "hue + 5 degrees": (hue_turned, 0.99),
    "blue 10 % down": (lambda images: images * np.array([1, 1, 0.9], np.float32), 0.99),
    "8 x 8 white pixels": (with_block, 0.98),
}
"""Each with the SSIM that it leaves, at least."""


@needs_flip
@pytest.mark.parametrize("name", DAMAGES)
def test_what_ssim_lets_through_fails_by_another_measure(name: str) -> None:
    damage, at_least = DAMAGES[name]
    expected = picture()
    images = likeness(np.clip(damage(expected.copy()), 0, 1), expected)
    assert images[0].ssim >= at_least
    # As close as any technique is held to fp32's, and as an image is held to its own baseline's.
    for whose in (FP32, STORED):
        verdict = judge_likeness(case(), images, limits(NONE, whose), whose)
        assert verdict.outcome is Outcome.REGRESSION, verdict.sentence
        assert any(f": {quantity.name} " in verdict.sentence for quantity in MEASURES.values())


@needs_flip
def test_another_rounding_to_eight_bits_passes() -> None:
    expected = picture()
    generator = np.random.default_rng(0)
    before = expected + generator.uniform(-0.4, 0.4, expected.shape).astype(np.float32) / 255
    before = np.clip(before, 0, 1)
    assert np.array_equal(as_bytes(before), as_bytes(expected))
    by_one = expected.copy()
    by_one[0, ::16, ::16] -= 1 / 255
    for drawn in (before, by_one):
        for whose in (FP32, STORED):
            verdict = judge_likeness(case(), likeness(drawn, expected), limits(NONE, whose), whose)
            assert verdict.outcome is Outcome.PASS, verdict.sentence


# What a record is held to


def outcomes(record: ScenarioRecord, **changes: Any) -> dict[str, tuple[str, Outcome]]:
    """What is judged besides the SSIM with fp32's image: metric and outcome by sentence."""
    verdicts = module.METRIC.judge(case(min_ssim=0.98, **changes), record)
    assert (verdicts[0].metric, verdicts[0].outcome) == ("SSIM", Outcome.PASS)
    return {verdict.sentence: (verdict.metric, verdict.outcome) for verdict in verdicts[1:]}


def drawn(likeness: Mapping[str, list[Likeness]] | None = None, **figures: Any) -> ScenarioRecord:
    return scenario_record("fp16", ssim=0.99, likeness=likeness or {}, **figures)


PALE = replace(EQUAL, largest=0.1, channel=0.1)


def test_without_a_stored_image_there_is_no_baseline_for_it() -> None:
    ((sentence, judged),) = outcomes(drawn()).items()
    assert judged == ("image difference", Outcome.NO_BASELINE)
    assert "accept it with: " in sentence
    (unknown,) = outcomes(drawn(), device_is_known=False, entry=None).values()
    assert unknown == ("image difference", Outcome.NOT_JUDGED)


def test_an_image_without_ssim_is_broken() -> None:
    (first, *_) = module.METRIC.judge(case(), scenario_record("fp16"))
    assert first.outcome is Outcome.BROKEN


@pytest.mark.parametrize("whose", [FROZEN, STORED])
def test_what_cannot_be_compared_fails_with_its_reason(whose: str) -> None:
    stored = {} if whose == STORED else {STORED: [EQUAL]}
    record = drawn(stored, not_compared={whose: (Outcome.NO_BASELINE, "it does not run here")})
    judgements = outcomes(record)
    (sentence,) = (text for text in judgements if "it does not run here" in text)
    assert judgements[sentence] == ("image difference", Outcome.NO_BASELINE)
    assert ("accept it with: " in sentence) == (whose == STORED), "no command makes one run"
    assert len(judgements) == (1 if whose == STORED else 2)


def test_the_difference_from_fp32_s_image_is_judged_where_harmless_variation_was_measured() -> None:
    record = drawn({FP32: [PALE], STORED: [EQUAL]})
    unknown = {sentence: flip for sentence, flip in outcomes(record).items() if FP32 in sentence}
    ((sentence, flip),) = unknown.items()
    assert flip == ("FLIP", Outcome.NOT_JUDGED)
    assert str(UNCALIBRATED) in sentence
    for channel, outcome in ((0.01, Outcome.REGRESSION), (0.05, Outcome.PASS)):
        harmless = {FP32: Variation(channel, 0.0, 0.0, 0.0)}
        judged = list(outcomes(record, harmless=harmless).values())
        assert ("channel difference", outcome) in judged
        assert ("FLIP", Outcome.NOT_JUDGED) not in judged


def test_an_image_that_was_fp32_s_to_rounding_is_held_to_that() -> None:
    """Whatever the technique's harmless variation is elsewhere."""
    wide = {STORED: Variation(0.2, 0.2, 0.2, 0.2)}
    for stored, outcome in (([EQUAL], Outcome.REGRESSION), ([PALE], Outcome.PASS)):
        record = drawn({STORED: [PALE]}, stored_apart=stored)
        ((_, outcome_now),) = outcomes(record, harmless=wide).values()
        assert outcome_now is outcome


@pytest.mark.parametrize(
    ("harmless", "outcome"), [({}, Outcome.PASS), ({STORED: NONE}, Outcome.REGRESSION)]
)
def test_an_image_may_move_as_was_measured_and_else_as_the_technique_moves_it(
    harmless: Mapping[str, Variation], outcome: Outcome
) -> None:
    record = drawn({STORED: [PALE]}, stored_apart=[PALE])
    ((_, outcome_now),) = outcomes(record, harmless=harmless).values()
    assert outcome_now is outcome
    further = replace(PALE, largest=0.5, channel=0.5)
    beyond = drawn({STORED: [further]}, stored_apart=[PALE])
    ((_, outcome_now),) = outcomes(beyond, harmless=harmless).values()
    assert outcome_now is Outcome.REGRESSION


def test_without_flip_the_rest_is_judged_and_a_verdict_says_so() -> None:
    blind = replace(EQUAL, flip=None, flip_max=None)
    harmless = {FP32: NONE}
    record = drawn({FP32: [blind], STORED: [blind]})
    judgements = outcomes(record, harmless=harmless)
    (sentence,) = (
        text for text, (_, outcome) in judgements.items() if outcome is Outcome.NOT_JUDGED
    )
    assert f"{NO_FLIP}: {installation('flip-evaluator')}" in sentence
    assert Outcome.REGRESSION not in {outcome for _, outcome in judgements.values()}
    pale = drawn({FP32: [replace(blind, channel=0.1)], STORED: [blind]})
    assert ("channel difference", Outcome.REGRESSION) in outcomes(pale, harmless=harmless).values()
    with_flip = outcomes(drawn({FP32: [EQUAL], STORED: [EQUAL]}), harmless=harmless)
    assert {outcome for _, outcome in with_flip.values()} == {Outcome.PASS}


@pytest.mark.parametrize(
    "stored", [{"ssim": 0.9}, {"images": ("x",)}], ids=lambda fields: next(iter(fields))
)
def test_where_nothing_is_drawn_what_the_entry_has_is_missed(stored: dict[str, Any]) -> None:
    has, lacks = (entry(**{"ssim": None, **fields}) for fields in (stored, {}))
    for made, outcome in ((has, Outcome.BROKEN), (lacks, Outcome.NOT_JUDGED)):
        (verdict,) = module.METRIC.judge(case(entry=made, no_images="draws none"), drawn())
        assert verdict.outcome is outcome


# Both sides of a comparison


def test_an_image_is_held_to_base_s_whatever_it_may_differ_from_fp32_s(tmp_path: Path) -> None:
    """And where it passes, but differs by more than rounding, both figures say so."""
    base, patched = picture(), picture()
    patched[0, :3, :3] = 1 - patched[0, :3, :3].round()
    for head, outcome in ((base, "same"), (patched, "passes"), (1 - base, "fails")):
        paths = [str(tmp_path / f"{name}.npy") for name in ("base", "head")]
        for path, image in zip(paths, (base, head), strict=True):
            np.save(path, image)
        side = side_case(min_ssim=0.5, images=(paths[0], paths[1]))
        [verdict] = module.METRIC.judge(side, drawn())
        assert (verdict.outcome is Outcome.REGRESSION) == (outcome == "fails")
        assert (verdict.baseline == verdict.measured) == (outcome == "same")
        assert ("values differ by up to" in verdict.text) == (outcome != "same")
        assert verdict.limit == 0.99


@needs_flip
def test_two_sides_are_told_apart_by_more_than_ssim_where_variation_was_measured(
    tmp_path: Path,
) -> None:
    base = picture()
    paths: list[str] = []
    for number, image in enumerate((base, base * np.float32(0.95))):
        paths.append(str(tmp_path / f"{number}.npy"))
        np.save(paths[-1], image)
    record = drawn()
    for harmless, head, wanted in (
        ({STORED: NONE}, 1, {"SSIM": Outcome.PASS, "FLIP": Outcome.REGRESSION}),
        ({STORED: NONE}, 0, {"SSIM": Outcome.PASS, "FLIP": Outcome.PASS}),
    ):
        images = paths[0], paths[head]
        side = side_case(harmless=harmless, images=images)
        verdicts = {
            "SSIM" if verdict.metric == "SSIM" else "FLIP": verdict
            for verdict in module.METRIC.judge(side, record)
        }
        assert {name: verdict.outcome for name, verdict in verdicts.items()} == wanted
        assert not [verdict for verdict in verdicts.values() if "refresh" in verdict.sentence]
