"""The workloads that run where they are named: images from small copies, tiles of their VAEs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from fixtures.devices.torch_settings import one_thread
from fixtures.techniques.vae import expected_chunks, expected_tiles
from fixtures.workloads import BY_NAME, WORKLOADS
from fixtures.workloads.twins import FRAMES, small
from tests.support.small_workloads import small_workload

pytestmark = [
    # Schedulers of diffusers turn tensors into arrays in a way that numpy 2 deprecates.
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    # Chroma's own model calls what diffusers deprecates.
    pytest.mark.filterwarnings("ignore:`FluxPosEmbed` is deprecated:FutureWarning"),
]


def test_every_workload_has_a_small_copy() -> None:
    assert set(small.BY_NAME) == {workload.name for workload in BY_NAME}


# Wan 14B has the layers of 1.3B, only more of them.
@pytest.mark.parametrize("name", [name for name in small.BY_NAME if name != "wan-14b"])
def test_a_small_copy_draws_images_that_depend_on_the_seed(name: str) -> None:
    workload = small_workload(name)
    with one_thread():
        pipeline = workload.load(torch.float32)
        images = workload.draw(pipeline, steps=2)
        again = workload.draw(workload.load(torch.float32), steps=2)
        other = workload.draw(pipeline, seed=1, steps=2)
    call = workload.call
    assert images.shape == (call.frames, call.height, call.width, 3)
    assert call.frames == (FRAMES if workload.kind == "video" else 1)
    assert np.isfinite(images).all()
    assert np.array_equal(images, again)
    assert not np.array_equal(images, other)


@pytest.mark.parametrize(
    ("name", "tiles", "chunks"),
    [
        ("wan-1.3b", 3 * 5, 21),
        ("wan-14b", 4 * 7, 21),
        ("wan2.2-5b", 4 * 7, 31),
        ("hunyuanvideo-1.5", 3 * 5, 1),
        ("ltx2", 2 * 2, 1),
    ],
)
def test_vaes_have_as_many_tiles_as_their_strides_ask_for(
    name: str, tiles: int, chunks: int
) -> None:
    import diffusers

    workload = WORKLOADS[name]
    source: Any = workload.source
    with torch.device("meta"):
        vae_class = getattr(diffusers, source.layout.models["vae"].classes[0])
        vae = vae_class.from_config(source.configs["vae"])
    factor, call = vae.spatial_compression_ratio, workload.call
    assert expected_tiles(vae, call.height // factor, call.width // factor) == tiles
    pipeline = SimpleNamespace(vae=vae, vae_scale_factor_temporal=4)
    assert expected_chunks(pipeline, call.frames) == chunks
