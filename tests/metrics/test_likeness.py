"""SSIM, FLIP and differences of values on seeded images; what is not an image is never measured."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fixtures.metrics import likeness as module
from fixtures.metrics.likeness import (
    BrokenImageError,
    check_images,
    flip_maps,
    has_flip,
    likeness,
    worst,
)
from fixtures.records.images import Images, Likeness
from tests.support.differences import largest_difference, ssim

needs_flip = pytest.mark.skipif(not has_flip(), reason="flip-evaluator is not installed")


SIDE = 64


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


# What is no image


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
    "infinity": (_spoil(math.inf), "image 2 of 2 has NaN or infinity"),
    "above one": (_spoil(1.01), "image 2 of 2 has values outside"),
    "below zero": (_spoil(-0.01), "image 2 of 2 has values outside"),
    "8 bit": ((images() * 255).astype(np.uint8), "has values outside"),
    "black": (_filled(0, 0, 0), "image 2 of 2 is black"),
    "nearly black": (_filled(1 / 255, 0, 0), "image 2 of 2 is black"),
    "one strong colour": (_filled(1, 0, 0), "image 2 of 2 is flat"),
    "nothing": (images()[:0], "want \\(n, height, width, 3\\)"),
    "one image without a batch": (images()[0], "want \\(n, height, width, 3\\)"),
    "transparent": (np.ones((1, SIDE, SIDE, 4)), "want \\(n, height, width, 3\\)"),
    "smaller than the window": (images(side=6), "want at least 7 x 7"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_image_is_refused_on_either_side(name: str) -> None:
    broken, message = BROKEN[name]
    with pytest.raises(BrokenImageError, match=message):
        check_images(broken)
    with pytest.raises(BrokenImageError, match=message):
        likeness(broken, images())
    with pytest.raises(BrokenImageError, match=message):
        likeness(images(), broken)


def test_a_dim_or_pale_image_is_still_an_image() -> None:
    check_images(images() * 0.1)
    check_images(1 - images() * 0.1)


@pytest.mark.parametrize(
    ("broken", "message"),
    [(images() * math.nan, "NaN"), (images(count=1), "the reference has")],
    ids=["broken", "another count"],
)
def test_what_cannot_be_compared_is_refused_before_anything_is_measured(
    broken: Images, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(*_: object, **__: object) -> float:
        raise AssertionError("it was measured")

    monkeypatch.setattr(module, "structural_similarity", measured)
    monkeypatch.setattr(module, "_flip", measured)
    for measure in (largest_difference, likeness):
        with pytest.raises(BrokenImageError, match=message):
            measure(broken, images())
        # A batch of another shape is named by what the reference has.
        with pytest.raises(BrokenImageError, match=message):
            measure(images(), broken)


# SSIM


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
    same, other = likeness(batch, reference)
    assert (same.largest, same.channel) == (0.0, 0.0)
    assert other.largest == pytest.approx(2 / 255, abs=1e-6)
    assert other.channel == pytest.approx(2 / 255 / SIDE**2, abs=1e-9)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_equal_images_have_ssim_one_and_no_difference(dtype: type[np.floating]) -> None:
    smallest = images(side=7).astype(dtype)
    assert ssim(smallest, smallest.copy()) == 1.0
    batch = images().astype(dtype)
    flip = 0.0 if has_flip() else None
    assert likeness(batch, batch.copy()) == [Likeness(1.0, 0.0, 0.0, flip, flip)] * 2


def test_the_worst_image_of_a_batch_counts() -> None:
    reference = images(count=3)
    batch = reference.copy()
    batch[1] = 1 - batch[1]
    each = [image.ssim for image in likeness(batch, reference)]
    assert each[0] == each[2] == 1.0
    assert each[1] < 0.5
    assert ssim(batch, reference) == min(each)
    assert worst(likeness(batch, reference)) == likeness(batch, reference)[1]


def test_the_scale_of_the_values_is_stated_and_not_guessed() -> None:
    """Dark images must not be stretched to their own range."""
    reference = images() * 0.05
    batch = reference + 0.002 * np.random.default_rng(0).random(reference.shape)
    assert ssim(batch, reference) > 0.99


# Colours, and FLIP


def test_the_channel_that_is_furthest_off_speaks_for_the_colours() -> None:
    reference = images(count=1) * 0.5
    (reddish,) = likeness(reference + np.array([0.02, 0.0, 0.0], np.float32), reference)
    (all_three,) = likeness(reference + np.float32(0.02), reference)
    assert reddish.channel == pytest.approx(0.02, abs=1e-6)
    assert reddish.channel == pytest.approx(all_three.channel, abs=1e-6)


@needs_flip
def test_flip_is_of_the_pixels_that_differ_and_grows_with_the_difference() -> None:
    reference = images(count=2) * 0.5
    batch = reference.copy()
    batch[1, 20:28, 20:28] = 1.0
    same, block = likeness(batch, reference)
    assert (same.flip, same.flip_max) == (0.0, 0.0)
    pairs = zip(batch, reference, strict=True)
    nothing, errors = (module._flip(*pair, coloured=False)[..., 0] for pair in pairs)
    maps = flip_maps(batch, reference)
    assert maps.shape == reference.shape
    assert errors.shape == (SIDE, SIDE)
    assert nothing.max() == 0.0
    assert maps[0].max() == pytest.approx(0.0, abs=0.05), "black"
    assert 0.8 < maps[1, 24, 24].max() <= 1.0
    assert (block.flip, block.flip_max) == pytest.approx((errors.mean(), errors.max()))
    assert errors[24, 24] > 0.5
    assert errors[24, 60] < 0.01, "far from the block there is none"
    assert maps[1, 24, 60].max() < 0.05
    fainter, fullest = (
        worst(likeness(np.clip(reference + share, 0, 1), reference)) for share in (0.01, 0.1)
    )
    assert 0 < (fainter.flip or 0) < (fullest.flip or 0) <= 1


def test_without_flip_everything_else_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    batch, reference = images(seed=1), images()
    (measured, *_) = likeness(batch, reference)
    monkeypatch.setattr(module, "has_flip", lambda: False)
    (without, *_) = images_of = likeness(batch, reference)
    assert (without.flip, without.flip_max) == (None, None)
    assert (without.ssim, without.largest, without.channel) == (
        *(measured.ssim, measured.largest, measured.channel),
    )
    assert (worst(images_of).flip, worst(images_of).flip_max) == (None, None)


def test_the_worst_image_is_the_one_of_the_lowest_ssim() -> None:
    first, second = Likeness(0.5, 0.1, 0.02), Likeness(0.9, 0.2, 0.01)
    assert worst([first, second]) is worst([second, first]) is first
