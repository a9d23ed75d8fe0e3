"""SSIM on seeded images, and refusal of what is not an image."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.records.images import Images
from fixtures.verdicts import similarity
from fixtures.verdicts.similarity import (
    IMAGE_CONTROLS,
    BrokenImageError,
    ImageControl,
    check_images,
    largest_difference,
    ssim,
    ssim_per_image,
)

SIDE = 64
CONTROL_LIMIT = 0.9


def images(count: int = 2, side: int = SIDE, seed: int = 0) -> Images:
    """Coloured gradients with a disc each: structure, edges, and channels that differ."""
    generator = np.random.default_rng(seed)
    rows, columns = np.mgrid[0:side, 0:side] / (side - 1)
    made = []
    for _ in range(count):
        image = np.stack([rows, columns * 0.5, 1 - (rows + columns) / 2], axis=-1)
        middle = generator.random(2) * 0.5 + 0.25
        inside = np.hypot(rows - middle[0], columns - middle[1]) < 0.2
        image[inside] = generator.random(3)
        made.append(np.clip(image, 0, 1))
    return np.stack(made).astype(np.float32)


def _spoil(value: float, image: int = 1) -> Images:
    batch = images()
    batch[image, 3, 4, 1] = value
    return batch


def _filled(*color: float) -> Images:
    batch = images()
    batch[1] = color
    return batch


BROKEN = {
    "NaN": (_spoil(math.nan), "image 2 of 2 has NaN or infinity"),
    "NaN in the first": (_spoil(math.nan, 0), "image 1 of 2 has NaN or infinity"),
    "infinity": (_spoil(math.inf), "image 2 of 2 has NaN or infinity"),
    "minus infinity": (_spoil(-math.inf), "image 2 of 2 has NaN or infinity"),
    "all NaN": (np.full((1, SIDE, SIDE, 3), math.nan), "100.0%"),
    "above one": (_spoil(1.01), "image 2 of 2 has values outside"),
    "below zero": (_spoil(-0.01), "image 2 of 2 has values outside"),
    "8 bit": ((images() * 255).astype(np.uint8), "has values outside"),
    "black": (_filled(0, 0, 0), "image 2 of 2 is black"),
    "nearly black": (_filled(1 / 255, 0, 0), "image 2 of 2 is black"),
    "white": (_filled(1, 1, 1), "image 2 of 2 is flat"),
    "grey": (_filled(0.5, 0.5, 0.5), "image 2 of 2 is flat"),
    "one strong colour": (_filled(1, 0, 0), "image 2 of 2 is flat"),
    "nothing": (images()[:0], "want \\(n, height, width, 3\\)"),
    "one image without a batch": (images()[0], "want \\(n, height, width, 3\\)"),
    "channels first": (images().transpose(0, 3, 1, 2), "want \\(n, height, width, 3\\)"),
    "transparent": (np.ones((1, SIDE, SIDE, 4)), "want \\(n, height, width, 3\\)"),
    "smaller than the window": (images(side=6), "want at least 7 x 7"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_image_is_refused_before_any_ssim_is_taken(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_ssim(*_: object, **__: object) -> float:
        raise AssertionError("SSIM was taken")

    monkeypatch.setattr(similarity, "structural_similarity", no_ssim)
    broken, message = BROKEN[name]
    with pytest.raises(BrokenImageError, match=message):
        ssim(broken, images())
    with pytest.raises(BrokenImageError, match=message):
        ssim(images(), broken)
    with pytest.raises(BrokenImageError, match=message):
        largest_difference(broken, images())


def test_a_dim_or_pale_image_is_still_an_image() -> None:
    check_images(images() * 0.1)
    check_images(1 - images() * 0.1)


def test_the_smallest_image_that_ssim_can_take_is_taken() -> None:
    small = images(side=7)
    assert ssim(small, small) == 1.0


@pytest.mark.parametrize("other", [images(count=1), images(side=SIDE // 2)])
def test_images_of_another_shape_are_refused(other: Images) -> None:
    with pytest.raises(BrokenImageError, match="the reference has"):
        ssim(images(), other)
    with pytest.raises(BrokenImageError, match="the reference has"):
        largest_difference(images(), other)


@pytest.mark.parametrize("sign", [-1, 1])
def test_one_value_of_one_image_is_the_largest_difference_and_does_not_show_in_ssim(
    sign: int,
) -> None:
    reference = images() * 0.5 + 0.25
    batch = reference.copy()
    assert largest_difference(batch, reference) == 0.0
    batch[1, 3, 4, 2] += sign * 2 / 255
    assert largest_difference(batch, reference) == pytest.approx(2 / 255, abs=1e-6)
    assert ssim(batch, reference) > 0.999


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_equal_images_have_ssim_one(dtype: type[np.floating]) -> None:
    batch = images().astype(dtype)
    assert ssim(batch, batch.copy()) == 1.0


def test_the_worst_image_of_a_batch_counts() -> None:
    reference = images(count=3)
    batch = reference.copy()
    batch[1] = 1 - batch[1]
    each = ssim_per_image(batch, reference)
    assert each[0] == each[2] == 1.0
    assert each[1] < 0.5
    assert ssim(batch, reference) == min(each)


def test_the_scale_of_the_values_is_stated_and_not_guessed() -> None:
    """Dark images must not be stretched to their own range."""
    reference = images() * 0.05
    batch = reference + 0.002 * np.random.default_rng(0).random(reference.shape)
    assert ssim(batch, reference) > 0.99


@settings(max_examples=15, deadline=None, derandomize=True, database=None)
@given(seed=st.integers(0, 1000), weak=st.floats(0.005, 0.03), factor=st.floats(2, 8))
def test_more_noise_lowers_the_similarity_and_the_order_of_the_two_does_not_matter(
    seed: int, weak: float, factor: float
) -> None:
    reference = images(count=1, side=32, seed=seed)
    noise = np.random.default_rng(seed).normal(0, 1, reference.shape)
    little = np.clip(reference + weak * noise, 0, 1)
    much = np.clip(reference + factor * weak * noise, 0, 1)
    assert ssim(much, reference) < ssim(little, reference) < 1.0
    assert ssim(little, reference) == pytest.approx(ssim(reference, little), abs=1e-9)


@pytest.mark.parametrize("control", IMAGE_CONTROLS, ids=lambda control: control.name)
def test_a_negative_control_is_refused_or_falls_far_below_a_usable_limit(
    control: ImageControl,
) -> None:
    reference = images()
    try:
        similarity = ssim(control.make(reference), reference)
    except BrokenImageError:
        assert control.name == "black"
    else:
        assert similarity < CONTROL_LIMIT


def test_a_control_leaves_its_reference_alone_and_repeats() -> None:
    reference = images()
    before = reference.copy()
    for control in IMAGE_CONTROLS:
        np.testing.assert_array_equal(control.make(reference), control.make(reference))
    np.testing.assert_array_equal(reference, before)
