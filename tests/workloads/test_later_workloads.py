"""The full-size models from 2024 on: published sizes and calls, and images from small copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from fixtures.devices.global_state import one_thread
from fixtures.workloads import LATER_WORKLOADS, WORKLOADS
from fixtures.workloads.loading import Source
from tests.support.small_later import SMALL_LATER
from tests.support.small_workloads import FRAMES, small_workload

pytestmark = [
    # Schedulers of diffusers turn tensors into arrays in a way that numpy 2 deprecates.
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
]
GIB, MIB, B = 2**30, 2**20, 10**9
BF16 = 2
"""Bytes of a number."""

# By workload and component: the exact number of parameters, and what is published of it as
# (figure, decimals): the exact one rounds to that.
# Qwen-Image: technical report, table 1, https://arxiv.org/abs/2508.02324 (20B; the VAE's encoder
#   and decoder have 54M and 73M), and https://github.com/Comfy-Org/ComfyUI/pull/15221 (242 MB).
# Z-Image-Turbo: sizes in bf16 of https://github.com/huggingface/diffusers/pull/14304.
SIZES: dict[tuple[str, str], tuple[int, float, float, int]] = {
    ("qwen-image", "transformer"): (20_430_401_088, B, 20, 0),
    ("qwen-image", "vae"): (126_892_531, MIB / BF16, 242, 0),
    ("qwen-image", "text_encoder"): (8_292_166_656, B, 8.29, 2),
    ("z-image-turbo", "transformer"): (6_154_908_736, GIB / BF16, 11.46, 2),
    ("z-image-turbo", "text_encoder"): (4_022_468_096, GIB / BF16, 7.49, 2),
    ("z-image-turbo", "vae"): (83_819_683, MIB / BF16, 159.87, 2),
}


def component(source: Any, name: str) -> torch.nn.Module:
    """A component of a workload on the meta device."""
    from importlib import import_module

    assert isinstance(source, Source)
    part, config = source.layout.models[name], source.configs[name]
    model = getattr(import_module(part.library), part.classes[0])
    with torch.device("meta"):
        if part.library == "diffusers":
            made = model.from_config(config)
        else:
            made = model(model.config_class.from_dict(dict(config)))
    assert isinstance(made, torch.nn.Module)
    return made


@pytest.mark.parametrize(("workload", "name"), SIZES)
def test_a_component_has_as_many_parameters_as_is_published(workload: str, name: str) -> None:
    exact, unit, published, decimals = SIZES[workload, name]
    model = component(WORKLOADS[workload].source, name)
    assert sum(parameter.numel() for parameter in model.parameters()) == exact
    assert round(exact / unit, decimals) == published


def test_every_component_has_a_published_size() -> None:
    for workload in LATER_WORKLOADS:
        assert isinstance(workload.source, Source)
        sized = {component for name, component in SIZES if name == workload.name}
        assert sized == set(workload.source.layout.models), workload.name


def test_the_workloads_are_the_published_calls() -> None:
    calls = {
        one.name: (
            *(one.kind, one.call.width, one.call.height, one.call.frames, one.call.steps),
            *(one.call.guidance_scale, one.half),
        )
        for one in LATER_WORKLOADS
    }
    assert calls == {
        "qwen-image": ("transformer", 1664, 928, 1, 50, 4.0, "bfloat16"),
        "z-image-turbo": ("transformer", 1024, 1024, 1, 8, 0.0, "bfloat16"),
    }


@pytest.mark.parametrize("name", SMALL_LATER)
def test_a_small_copy_draws_images_that_depend_on_seed_and_prompt(name: str) -> None:
    workload = small_workload(name)
    with one_thread():
        pipeline = workload.load(torch.float32)
        images = workload.draw(pipeline)
        again = workload.draw(workload.load(torch.float32))
        others = [
            workload.draw(pipeline, **change)
            for change in ({"seed": 1}, {"prompt": "a bowl of fruit"})
        ]
    call = workload.call
    assert images.shape == (call.frames, call.height, call.width, 3)
    assert call.frames == (FRAMES if workload.kind == "video" else 1)
    assert np.isfinite(images).all()
    assert np.array_equal(images, again)
    for other in others:
        assert not np.array_equal(images, other)


@pytest.mark.parametrize("name", SMALL_LATER)
def test_a_batch_holds_every_image_once(name: str) -> None:
    workload = small_workload(name)
    with one_thread():
        images = workload.draw(workload.load(torch.float32), batch=2, steps=2)
    assert len(images) == 2 * workload.call.frames
    first, second = np.split(images, 2)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("name", SMALL_LATER)
def test_a_small_copy_draws_in_its_half_precision(name: str) -> None:
    workload = small_workload(name)
    with one_thread():
        images = workload.draw(workload.load(getattr(torch, workload.half)), steps=2)
    assert np.isfinite(images).all()
