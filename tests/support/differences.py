"""How far apart two images are, as one number."""

from __future__ import annotations

from fixtures.metrics.likeness import likeness, worst
from fixtures.records.images import Images


def largest_difference(images: Images, reference: Images) -> float:
    """The largest absolute difference of any value, from 0 to 1.

    Raises:
        BrokenImageError: if a side is not an image, or the shapes differ.
    """
    return worst(likeness(images, reference)).largest


def ssim(images: Images, reference: Images) -> float:
    """The smallest SSIM of a batch: one spoilt image must not hide among good ones."""
    return worst(likeness(images, reference)).ssim
