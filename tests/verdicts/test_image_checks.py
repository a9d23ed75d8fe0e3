"""Refusal of what is not an image, and images that are wrong on purpose."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fixtures.records.images import Images
from fixtures.verdicts.likeness import BrokenImageError, check_images, likeness
from tests.verdicts.gradients import SIDE, images


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
