"""How far apart two images are, as one number."""

from __future__ import annotations

import numpy as np

from fixtures.records.images import Images
from fixtures.verdicts.likeness import check_both, likeness, worst


def largest_difference(images: Images, reference: Images) -> float:
    """The largest absolute difference of any value, from 0 to 1.

    Raises:
        BrokenImageError: if a side is not an image, or the shapes differ.
    """
    check_both(images, reference)
    return float(np.abs(images.astype(np.float64) - reference.astype(np.float64)).max())


def ssim(images: Images, reference: Images) -> float:
    """The smallest SSIM of a batch: one spoilt image must not hide among good ones."""
    return worst(likeness(images, reference)).ssim
