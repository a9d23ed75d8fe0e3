"""The shapes of latents, and the arguments of a call."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from fixtures.workloads.calls import Call, Drawing
from fixtures.workloads.latents import patches, plane, volume

CALL = Call("a cat", width=64, height=32, steps=3, guidance_scale=4.0, batch=2, frames=9)


class Pipeline:
    """Keeps what it is called with."""

    def __init__(self) -> None:
        self.transformer = SimpleNamespace(dtype=torch.bfloat16)
        self.called: dict[str, Any] = {}

    def __call__(self, **arguments: Any) -> Any:
        self.called = arguments
        count = arguments.get("num_frames")
        shape = (2, 32, 64, 3) if count is None else (2, count, 32, 64, 3)
        return SimpleNamespace(images=np.zeros(shape), frames=np.zeros(shape))


def test_shapes() -> None:
    assert plane(16, 8)(None, 2, 1, 32, 64) == (2, 16, 4, 8)
    assert patches(64, 16)(None, 2, 1, 32, 64) == (2, 8, 64)
    assert volume(16, 8, 4)(None, 2, 9, 32, 64) == (2, 16, 3, 4, 8)
    assert volume(16, 8, 4)(None, 1, 1, 32, 64) == (1, 16, 1, 4, 8)


def test_images_are_called_with_latents_in_the_denoisers_precision() -> None:
    pipeline = Pipeline()
    drawing = Drawing(plane(16, 8), "true_cfg_scale", more={"negative_prompt": "low quality"})
    assert drawing(pipeline, CALL).shape == (2, 32, 64, 3)
    latents = pipeline.called.pop("latents")
    assert (latents.shape, latents.dtype) == ((2, 16, 4, 8), torch.bfloat16)
    assert pipeline.called == {
        "prompt": ["a cat", "a cat"],
        "width": 64,
        "height": 32,
        "num_inference_steps": 3,
        "true_cfg_scale": 4.0,
        "negative_prompt": "low quality",
        "output_type": "np",
    }


def test_the_noise_is_that_of_the_seed_whatever_the_precision() -> None:
    half, full = Pipeline(), Pipeline()
    full.transformer.dtype = torch.float32
    drawing = Drawing(plane(4, 8))
    for pipeline in (half, full):
        drawing(pipeline, CALL)
    assert torch.equal(half.called["latents"], full.called["latents"].bfloat16())
    drawing(full, replace(CALL, seed=1))
    assert not torch.equal(half.called["latents"], full.called["latents"].bfloat16())


def test_frames_of_videos_are_images_one_video_after_the_other() -> None:
    pipeline = Pipeline()
    drawing = Drawing(volume(16, 8, 4), guidance="", films=True)
    assert drawing(pipeline, CALL).shape == (18, 32, 64, 3)
    assert pipeline.called["num_frames"] == 9
    assert "guidance_scale" not in pipeline.called
