"""Techniques on the embedded workloads: in effect, by half, and what they draw and save.

Caches and those by optional libraries: `test_caching.py`, `test_optional.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from diffusers.models.attention_dispatch import AttentionBackendName, _AttentionBackendRegistry
from diffusers.models.transformers import transformer_flux

from fixtures.catalogue.matrix import Scenario
from fixtures.catalogue.techniques import CATALOGUE, prompts
from fixtures.catalogue.techniques.blocks import chunkable_blocks
from fixtures.catalogue.techniques.technique import REFERENCE
from fixtures.catalogue.techniques.vae import load_tiny_vae
from fixtures.catalogue.workloads import WORKLOADS, Workload
from fixtures.catalogue.workloads.base import RANDOM
from fixtures.catalogue.workloads.storybook import PIPELINE_FOLDER, TINY_VAE_FOLDER
from fixtures.devices.cpu import CpuDevice
from fixtures.devices.phases import denoiser
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.metrics.peak_memory import PEAK_MEMORY
from fixtures.worker.observation import Observation, observe
from tests.support.half_done import (
    STEPS,
    WARM_UP_STEPS,
    HalfDone,
    Spoil,
    brief,
    complaint_at_rest,
    nothing,
)
from tests.support.small_workloads import small_workload

# What XL warns of, with or without a technique.
pytestmark = [
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:`upcast_vae` is deprecated:FutureWarning"),
]

UNET, DIT = "storybook", "storybook-dit"
CHUNKED, ENCODED, TINY = "feed_forward_chunking", "prompt_embeddings", "tiny_vae"
TRANSFORMER_ATTENTION = ("math_backend", "flash_backend", "fused_qkv_projections")
CPU = CpuDevice()


@cache
def workload_of(name: str) -> Workload:
    if WORKLOADS[name].is_embedded:
        return brief(name, 128)
    workload = small_workload(name)
    return replace(workload, call=replace(workload.call, steps=STEPS))


@cache
def observed(name: str, technique: str = REFERENCE) -> Observation:
    return observe(Scenario(workload_of(name), CATALOGUE[technique]), CPU)


def drawn(technique: str, workload: Workload, **changes: Any) -> Any:
    with CATALOGUE[technique].applied(workload, CPU) as pipeline:
        return workload.draw(pipeline, **changes)


# In full


@pytest.mark.parametrize(
    ("technique", "name", "tolerance"),
    [
        *((technique, DIT, 1e-3) for technique in TRANSFORMER_ATTENTION),
        (CHUNKED, UNET, 1e-4),
        *((ENCODED, name, 0) for name in CATALOGUE[ENCODED].settings),
    ],
)
def test_it_draws_the_same_with_less_memory(technique: str, name: str, tolerance: float) -> None:
    backend, plain = _AttentionBackendRegistry.get_active_backend(), observed(name)
    applied = observed(name, technique)
    assert applied.inactive is None
    assert not applied.faults
    np.testing.assert_allclose(applied.images, plain.images, atol=tolerance, rtol=0)
    ours, reference = applied.component_peak_bytes, plain.component_peak_bytes
    for claim in CATALOGUE[technique].claims:
        if claim.metric == PEAK_MEMORY and claim.than == REFERENCE:
            assert ours[claim.component] < reference[claim.component]
    assert reference.keys() - ours.keys() == ({"text_encoder"} if technique == ENCODED else set())
    assert _AttentionBackendRegistry.get_active_backend() == backend


@pytest.mark.parametrize("name", [UNET, DIT])
def test_a_tiny_vae_draws_nearly_the_same_with_less_memory_for_decoding(name: str) -> None:
    plain, tiny = observed(name), observed(name, TINY)
    assert tiny.inactive is None
    for component in ("vae", "denoiser"):
        assert tiny.component_peak_bytes[component] < plain.component_peak_bytes[component]
    images = [drawn(technique, WORKLOADS[name]) for technique in (REFERENCE, TINY)]
    assert 0 < np.abs(images[0] - images[1]).mean() < 0.02


# By half


def half_with_the_default(pipeline: Any) -> None:
    for processor in list(pipeline.transformer.attn_processors.values())[::2]:
        processor._attention_backend = None


def half_apart(pipeline: Any) -> None:
    layers = [m for m in pipeline.transformer.modules() if hasattr(m, "unfuse_projections")]
    for layer in layers[::2]:
        layer.unfuse_projections()


def meanwhile(owner: Any, name: str, value: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    """The same call, during which an attribute has another value."""

    def changed(*args: Any, **kwargs: Any) -> Any:
        with mock.patch.object(owner, name, value):
            return call(*args, **kwargs)

    return changed


def ignore_the_matrix(pipeline: Any) -> None:
    """A processor that knows nothing of fused projections."""
    for layer in pipeline.transformer.modules():
        if hasattr(layer, "unfuse_projections"):
            layer.processor = meanwhile(layer, "fused_projections", False, layer.processor)


def use_native_under_another_name(pipeline: Any) -> None:
    """What a layer says is not what it does: it takes the native kernel whatever it asks for."""
    compute = transformer_flux.FluxAttnProcessor.__call__

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        with mock.patch.object(self, "_attention_backend", AttentionBackendName.NATIVE):
            return compute(self, *args, **kwargs)

    for processor in pipeline.transformer.attn_processors.values():
        kind = type(processor)
        processor.__class__ = type(kind.__name__, (kind,), {"__call__": call})


def whole_in_every_other(pipeline: Any) -> None:
    for block in list(chunkable_blocks(pipeline.unet).values())[::2]:
        block.set_chunk_feed_forward(None, 0)


def pieces_of(images: int, dim: int) -> Spoil:
    def spoil(pipeline: Any) -> None:
        for block in chunkable_blocks(pipeline.unet).values():
            block.set_chunk_feed_forward(images, dim)

    return spoil


def pieces_are_ignored(pipeline: Any) -> None:
    """Blocks that know their pieces and compute all at once."""
    for block in chunkable_blocks(pipeline.unet).values():
        block.__dict__["forward"] = meanwhile(block, "_chunk_size", None, block.forward)


def put_the_second_encoder_back(pipeline: Any) -> None:
    pipeline._pipeline.text_encoder_2 = WORKLOADS[DIT].load(torch.float32).text_encoder_2


def free_the_encoder_late(pipeline: Any) -> None:
    """Encode inside of the call, and free the encoder before the last step."""
    calls = iter(range(100))
    inner = pipeline._pipeline

    def at_a_step(*_: Any) -> None:
        # Each step has two prompts.
        number = next(calls)
        if number == 0:
            inner.text_encoder = WORKLOADS[DIT].load(torch.float32).text_encoder
        elif number == 2 * (WARM_UP_STEPS + STEPS) - 1:
            inner.text_encoder = None
        elif number == 2 * WARM_UP_STEPS:
            inner.text_encoder(torch.zeros(1, 4, dtype=torch.long))

    denoiser(inner).register_forward_pre_hook(at_a_step)


def large_vae() -> Any:
    return WORKLOADS[UNET].load(torch.float32).vae


def large_again(pipeline: Any) -> None:
    pipeline.vae = large_vae()


def the_large_ones_decoder(pipeline: Any) -> None:
    pipeline.vae.decoder = large_vae().decoder


def decoded_by_the_large_one(pipeline: Any) -> None:
    pipeline.vae.decode = large_vae().decode


NATIVE = use_native_under_another_name
HALF_DONE = [
    HalfDone("math_backend", "half", half_with_the_default, "do not ask _native_math"),
    HalfDone("math_backend", "said", NATIVE, "separate soft", called=True),
    HalfDone("fused_qkv_projections", "in half of the layers", half_apart, "have a matrix each"),
    HalfDone("fused_qkv_projections", "unused", ignore_the_matrix, "matrix products", called=True),
    HalfDone(CHUNKED, "half of the blocks", whole_in_every_other, "4 of 7 blocks do not"),
    HalfDone(CHUNKED, "pieces of all images", pieces_of(2, 0), "7 of 7 blocks do not"),
    HalfDone(CHUNKED, "of tokens", pieces_of(1, 1), "7 of 7 blocks do not"),
    HalfDone(CHUNKED, "ignored", pieces_are_ignored, "computed 14 pieces, 28 or more", called=True),
    HalfDone(ENCODED, "one of two", put_the_second_encoder_back, "still has text_encoder_2"),
    HalfDone(ENCODED, "freed late", free_the_encoder_late, "ran 1 times during", called=True),
    HalfDone(TINY, "undone", large_again, "the VAE is AutoencoderKL, not AutoencoderTiny"),
    HalfDone(TINY, "its encoder alone", the_large_ones_decoder, "is Decoder, not DecoderTiny"),
    HalfDone(TINY, "another", decoded_by_the_large_one, "decoded in 0 calls", called=True),
]


@pytest.mark.parametrize("case", HALF_DONE, ids=str)
def test_a_half_done_technique_is_inactive(case: HalfDone) -> None:
    case.is_noticed(brief(UNET if case.technique in (CHUNKED, TINY) else DIT), CPU)


# Prompts


def test_another_prompt_is_encoded_when_it_is_asked_for() -> None:
    """As the calibration does, which draws several with one pipeline."""
    workload, other = brief(DIT), {"prompt": "a red house", "seed": 3}
    wanted = [drawn(REFERENCE, workload, **changes) for changes in ({}, other)]
    assert not np.array_equal(*wanted)
    with CATALOGUE[ENCODED].applied(workload, CPU) as pipeline:
        for image, changes in ((wanted[1], other), (wanted[0], {}), (wanted[1], other)):
            np.testing.assert_array_equal(workload.draw(pipeline, **changes), image)
        assert all(encoder() is None for encoder in pipeline.encoders)


def test_a_batch_is_of_as_many_prompts() -> None:
    workload = brief(UNET)
    call = replace(workload.call, batch=2, further_prompts=("a red house",))
    workload = replace(workload, call=call)
    np.testing.assert_array_equal(drawn(ENCODED, workload), drawn(REFERENCE, workload))


def test_an_encoder_that_somebody_keeps_is_not_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    encode, kept = prompts._embeddings, []

    def keeps(pipeline: Any, *more: Any) -> dict[str, Any]:
        kept.append(pipeline.text_encoder)
        return encode(pipeline, *more)

    monkeypatch.setattr(prompts, "_embeddings", keeps)
    said = complaint_at_rest(ENCODED, brief(DIT), CPU, nothing)
    assert said == "1 of 2 text encoders were not freed"


# A tiny VAE: which one a workload takes


@pytest.mark.parametrize(
    ("name", "channels", "parameters"), [("sd15", 4, 2_445_063), ("flux", 16, 2_458_899)]
)
def test_random_weights_have_a_random_one_of_the_published_size(
    name: str, channels: int, parameters: int
) -> None:
    """As many parameters as the published files have."""
    tiny = load_tiny_vae(WORKLOADS[name], "nobody/nothing", channels, torch.bfloat16)
    assert sum(weight.numel() for weight in tiny.parameters()) == parameters
    assert {weight.dtype for weight in tiny.parameters()} == {torch.bfloat16}


def test_on_random_weights_its_images_are_not_judged() -> None:
    case = Scenario(WORKLOADS[UNET].with_weights(RANDOM), CATALOGUE[TINY])
    assert case.no_images(CPU) == "tiny_vae relies on trained weights, and these are random"
    assert case.reference.no_images(CPU) is None
    assert Scenario(WORKLOADS[UNET], CATALOGUE[TINY]).no_images(CPU) is None
    # A device without images says so first.
    case, device = Scenario(WORKLOADS["sd15"], CATALOGUE[TINY]), SimulatedDevice()
    assert case.no_images(device) == case.reference.no_images(device)


def test_other_weights_take_the_published_one(tmp_path: Path) -> None:
    """A folder here stands for the hub's."""
    own = tmp_path / "own"
    own.symlink_to(PIPELINE_FOLDER)
    workload = replace(WORKLOADS[UNET].with_weights(str(own)), call=workload_of(UNET).call)
    settings = {UNET: {"published": str(TINY_VAE_FOLDER)}}
    case = Scenario(workload, replace(CATALOGUE[TINY], settings=settings))
    np.testing.assert_array_equal(observe(case, CPU).images, observed(UNET, TINY).images)
    by_shapes = load_tiny_vae(workload.by_configuration, "nobody/nothing", 4, torch.float32)
    assert by_shapes.config.decoder_block_out_channels == (64, 64, 64, 64)
