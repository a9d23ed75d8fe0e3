"""Seeded images to measure: coloured gradients with a disc each."""

from __future__ import annotations

import numpy as np

from fixtures.records.images import Images

SIDE = 64


def images(count: int = 2, side: int = SIDE, seed: int = 0) -> Images:
    """Structure, edges, and channels that differ."""
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
