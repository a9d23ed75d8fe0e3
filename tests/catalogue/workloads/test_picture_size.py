"""A pipeline draws what it is asked for: as many pictures, each as large."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from fixtures.catalogue.workloads.calls import Call, Drawing, PictureSizeError, small_images, volume

CALL = Call("a cat", width=64, height=32, steps=3, guidance_scale=4.0, batch=2)


class Pipeline:
    """Draws two pictures, or two videos of nine frames, of 64 by 32 pixels."""

    unet = SimpleNamespace(dtype=torch.float32, config=SimpleNamespace(in_channels=4))
    vae_scale_factor = 8

    def __call__(self, **arguments: Any) -> Any:
        return SimpleNamespace(images=np.zeros((2, 32, 64, 3)), frames=np.zeros((2, 9, 32, 64, 3)))


@pytest.mark.parametrize(
    ("drawing", "call"),
    [
        (Drawing(small_images), CALL),
        (Drawing(volume(16, 8, 4), films=True), replace(CALL, frames=9)),
    ],
)
def test_other_sizes_and_numbers_are_refused(drawing: Drawing, call: Call) -> None:
    count = call.batch * call.frames
    assert drawing(Pipeline(), call).shape == (count, 32, 64, 3)
    for other, asked in (
        (replace(call, width=80), f"80 x 32 x {count}"),
        (replace(call, height=64), f"64 x 64 x {count}"),
        (replace(call, batch=3), f"64 x 32 x {count // 2 * 3}"),
    ):
        with pytest.raises(PictureSizeError) as caught:
            drawing(Pipeline(), other)
        assert str(caught.value) == f"draws 64 x 32 x {count} where {asked} was asked for"
