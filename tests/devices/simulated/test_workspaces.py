"""The rule for cuDNN's workspaces, case by case."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fixtures.devices.simulated.kernels import workspace_bytes

aten = torch.ops.aten
HALF, FULL = torch.float16, torch.float32


def convolution(
    values: tuple[int, ...],
    weight: tuple[int, ...],
    dtype: torch.dtype = HALF,
    *,
    stride: int = 1,
    transposed: bool = False,
    groups: int = 1,
    channels_last: bool = False,
) -> int:
    """The workspace of a convolution with a padding of one."""
    spatial = len(values) - 2
    sides = [torch.empty(shape, dtype=dtype, device="meta") for shape in (values, weight)]
    if channels_last:
        sides[0] = sides[0].to(memory_format=torch.channels_last)
    places: Any = ([stride] * spatial, [1] * spatial, [1] * spatial)
    rest = (transposed, [0] * spatial, groups)
    return workspace_bytes(aten.convolution.default, (*sides, None, *places, *rest))


IMAGES, PLANE, KERNEL = 2 * 8 * 6 * 4, 6 * 4, 16 * 8 * 3 * 3
IMAGE, WEIGHT = (1, 8, 6, 4), (8, 8, 3, 3)


@pytest.mark.parametrize(
    ("workspace", "expected_bytes"),
    [
        # In half precision input, weight and output are copied, in fp32 the input alone.
        (convolution((2, 8, 6, 4), (16, 8, 3, 3)), 2 * (IMAGES + KERNEL + 2 * 16 * PLANE)),
        (convolution((2, 8, 6, 4), (16, 8, 3, 3), stride=2), 2 * (IMAGES + KERNEL + 2 * 16 * 6)),
        (convolution((2, 8, 6, 4), (16, 8, 3, 3), FULL), 4 * IMAGES),
        # In three dimensions half precision alone is known to copy.
        (
            convolution((1, 8, 5, 6, 4), (16, 8, 3, 3, 3)),
            2 * (8 * 5 * PLANE + 3 * KERNEL + 16 * 5 * PLANE),
        ),
        (convolution((1, 8, 5, 6, 4), (16, 8, 3, 3, 3), FULL), 0),
        # Groups that are not of one channel.
        (convolution(IMAGE, (8, 4, 3, 3), FULL, groups=2), 4 * 8 * PLANE),
        # Several images that are channels-last need no copy.
        (convolution((2, 8, 6, 4), WEIGHT, channels_last=True), 0),
        (convolution(IMAGE, WEIGHT, FULL, channels_last=True), 4 * 8 * PLANE),
        (convolution((2, 1, 6, 4), (8, 1, 3, 3), FULL, channels_last=True), 4 * 2 * PLANE),
        # What cuDNN does not compute, or nobody measured.
        (convolution(IMAGE, (16, 1, 3, 3), groups=8), 0),
        (convolution(IMAGE, WEIGHT, transposed=True), 0),
        (convolution((1, 8, 6), (8, 8, 3)), 0),
        (workspace_bytes(aten.mm.default, [torch.empty(4, 4, device="meta")] * 2), 0),
    ],
)
def test_what_is_copied(workspace: int, expected_bytes: int) -> None:
    assert workspace == expected_bytes
