"""SSIM on seeded pictures, and refusal of what is no picture."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures import similarity
from fixtures.similarity import (
    PICTURE_CONTROLS,
    BrokenPictureError,
    Control,
    Pictures,
    check_pictures,
    ssim,
    ssim_per_picture,
)

SIDE = 64
CONTROL_LIMIT = 0.9


def pictures(count: int = 2, side: int = SIDE, seed: int = 0) -> Pictures:
    """Coloured gradients with a disc each: structure, edges, and channels that differ."""
    generator = np.random.default_rng(seed)
    rows, columns = np.mgrid[0:side, 0:side] / (side - 1)
    made = []
    for _ in range(count):
        picture = np.stack([rows, columns * 0.5, 1 - (rows + columns) / 2], axis=-1)
        middle = generator.random(2) * 0.5 + 0.25
        inside = np.hypot(rows - middle[0], columns - middle[1]) < 0.2
        picture[inside] = generator.random(3)
        made.append(np.clip(picture, 0, 1))
    return np.stack(made).astype(np.float32)


def _spoil(value: float, picture: int = 1) -> Pictures:
    batch = pictures()
    batch[picture, 3, 4, 1] = value
    return batch


def _filled(*color: float) -> Pictures:
    batch = pictures()
    batch[1] = color
    return batch


BROKEN = {
    "NaN": (_spoil(math.nan), "picture 2 of 2 has NaN or infinity"),
    "NaN in the first": (_spoil(math.nan, 0), "picture 1 of 2 has NaN or infinity"),
    "infinity": (_spoil(math.inf), "picture 2 of 2 has NaN or infinity"),
    "minus infinity": (_spoil(-math.inf), "picture 2 of 2 has NaN or infinity"),
    "all NaN": (np.full((1, SIDE, SIDE, 3), math.nan), "100.0%"),
    "above one": (_spoil(1.01), "picture 2 of 2 has values outside"),
    "below zero": (_spoil(-0.01), "picture 2 of 2 has values outside"),
    "8 bit": ((pictures() * 255).astype(np.uint8), "has values outside"),
    "black": (_filled(0, 0, 0), "picture 2 of 2 is black"),
    "nearly black": (_filled(1 / 255, 0, 0), "picture 2 of 2 is black"),
    "white": (_filled(1, 1, 1), "picture 2 of 2 is flat"),
    "grey": (_filled(0.5, 0.5, 0.5), "picture 2 of 2 is flat"),
    "one strong colour": (_filled(1, 0, 0), "picture 2 of 2 is flat"),
    "nothing": (pictures()[:0], "want \\(n, height, width, 3\\)"),
    "one picture without a batch": (pictures()[0], "want \\(n, height, width, 3\\)"),
    "channels first": (pictures().transpose(0, 3, 1, 2), "want \\(n, height, width, 3\\)"),
    "transparent": (np.ones((1, SIDE, SIDE, 4)), "want \\(n, height, width, 3\\)"),
    "smaller than the window": (pictures(side=6), "want at least 7 x 7"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_picture_is_refused_before_any_ssim_is_taken(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_ssim(*_: object, **__: object) -> float:
        raise AssertionError("SSIM was taken")

    monkeypatch.setattr(similarity, "structural_similarity", no_ssim)
    broken, message = BROKEN[name]
    with pytest.raises(BrokenPictureError, match=message):
        ssim(broken, pictures())
    with pytest.raises(BrokenPictureError, match=message):
        ssim(pictures(), broken)


def test_a_dim_or_pale_picture_is_still_a_picture() -> None:
    check_pictures(pictures() * 0.1)
    check_pictures(1 - pictures() * 0.1)


def test_the_smallest_picture_that_ssim_can_take_is_taken() -> None:
    small = pictures(side=7)
    assert ssim(small, small) == 1.0


@pytest.mark.parametrize("other", [pictures(count=1), pictures(side=SIDE // 2)])
def test_pictures_of_another_shape_are_refused(other: Pictures) -> None:
    with pytest.raises(BrokenPictureError, match="the reference has"):
        ssim(pictures(), other)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_equal_pictures_have_ssim_one(dtype: type) -> None:
    batch = pictures().astype(dtype)
    assert ssim(batch, batch.copy()) == 1.0


def test_the_worst_picture_of_a_batch_counts() -> None:
    reference = pictures(count=3)
    batch = reference.copy()
    batch[1] = 1 - batch[1]
    each = ssim_per_picture(batch, reference)
    assert each[0] == each[2] == 1.0
    assert each[1] < 0.5
    assert ssim(batch, reference) == min(each)


def test_the_scale_of_the_values_is_stated_and_not_guessed() -> None:
    """Dark pictures must not be stretched to their own range."""
    reference = pictures() * 0.05
    batch = reference + 0.002 * np.random.default_rng(0).random(reference.shape)
    assert ssim(batch, reference) > 0.99


@settings(max_examples=15, deadline=None, derandomize=True, database=None)
@given(seed=st.integers(0, 1000), weak=st.floats(0.005, 0.03), factor=st.floats(2, 8))
def test_more_noise_is_less_like_and_the_order_of_the_two_does_not_matter(
    seed: int, weak: float, factor: float
) -> None:
    reference = pictures(count=1, side=32, seed=seed)
    noise = np.random.default_rng(seed).normal(0, 1, reference.shape)
    little = np.clip(reference + weak * noise, 0, 1)
    much = np.clip(reference + factor * weak * noise, 0, 1)
    assert ssim(much, reference) < ssim(little, reference) < 1.0
    assert ssim(little, reference) == pytest.approx(ssim(reference, little), abs=1e-9)


@pytest.mark.parametrize("control", PICTURE_CONTROLS, ids=lambda control: control.name)
def test_a_negative_control_is_refused_or_falls_far_below_a_usable_limit(control: Control) -> None:
    reference = pictures()
    try:
        likeness = ssim(control.make(reference), reference)
    except BrokenPictureError:
        assert control.name == "black"
    else:
        assert likeness < CONTROL_LIMIT


def test_a_control_leaves_its_reference_alone_and_repeats() -> None:
    reference = pictures()
    before = reference.copy()
    for control in PICTURE_CONTROLS:
        np.testing.assert_array_equal(control.make(reference), control.make(reference))
    np.testing.assert_array_equal(reference, before)
