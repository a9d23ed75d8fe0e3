"""A technique that is applied to half the model, without effect, or not to the end is inactive."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest
import torch
from diffusers.models.attention_processor import (
    AttnProcessor,
    AttnProcessor2_0,
    SlicedAttnProcessor,
)
from diffusers.models.autoencoders.vae import DecoderOutput

from fixtures.devices.cpu import CpuDevice
from fixtures.techniques import CATALOGUE
from fixtures.techniques.registry import Wrapped
from fixtures.workloads import Workload
from tests.support.half_done import STEPS, HalfDone, Spoil, before_the_last_step
from tests.support.simulated_runs import small


@cache
def workload_of(name: str) -> Workload:
    """As small as the technique allows: tiles need an image larger than one."""
    side_px = 128 if name == "vae_tiling" else 32
    batch = 2 if CATALOGUE[name].kinds == ("batch",) else 1
    return small(width=side_px, height=side_px, steps=STEPS, batch=batch)


# Precision


def autocast(**options: Any) -> Spoil:
    """Enter another autocast inside of the technique's own context."""

    def spoil(pipeline: Wrapped) -> None:
        pipeline._pipeline = Wrapped(pipeline._pipeline, lambda: torch.autocast("cpu", **options))

    return spoil


def leave_autocast(pipeline: Any) -> None:
    torch.set_autocast_enabled("cpu", False)


def computed_in_fp32(pipeline: Any) -> None:
    """Weights in half precision, cast up for the arithmetic of every layer."""
    layers: Any = pipeline.unet.modules()
    for layer in layers:
        if isinstance(layer, torch.nn.Linear | torch.nn.Conv2d):
            layer.__dict__["forward"] = partial(upcast, layer)


def upcast(module: Any, values: torch.Tensor) -> Any:
    weight, bias = module.weight.float(), None if module.bias is None else module.bias.float()
    if isinstance(module, torch.nn.Linear):
        return torch.nn.functional.linear(values.float(), weight, bias).to(values.dtype)
    return module._conv_forward(values.float(), weight, bias).to(values.dtype)


# Attention


def processors(make: Callable[[], Any], *, share: slice = slice(None)) -> Spoil:
    def spoil(pipeline: Any) -> None:
        unet = pipeline.unet
        chosen = set(list(unet.attn_processors)[share])
        unet.set_attn_processor(
            {
                name: make() if name in chosen else processor
                for name, processor in unet.attn_processors.items()
            }
        )

    return spoil


HALF = slice(None, None, 2)


def named(name: str, kind: type, **attributes: Any) -> Spoil:
    """Processors that are called as another class is, and compute as their own does."""
    return processors(type(name, (kind,), attributes))


def slice_of_all_heads(pipeline: Any) -> None:
    unet = pipeline.unet
    unet.set_attn_processor(
        {
            name: SlicedAttnProcessor(unet.get_submodule(name.removesuffix(".processor")).heads)
            for name in unet.attn_processors
        }
    )


# Layout


def contiguous(module: Any) -> None:
    for parameter in module.parameters():
        parameter.data = parameter.data.contiguous()


def contiguous_but(stays_last: Callable[[Any], Any]) -> Spoil:
    def spoil(pipeline: Any) -> None:
        contiguous(pipeline.unet)
        stays_last(pipeline).to(memory_format=torch.channels_last)

    return spoil


# Traced


def python_in_the_graphs_place(pipeline: Any) -> None:
    """The wrapper has the graph, and calls a UNet in Python."""
    unet = workload_of("traced_unet").load(torch.float32).unet
    pipeline.unet.forward = lambda *args, **kwargs: unet.forward(
        *args, **{**kwargs, "return_dict": False}
    )


def a_part_traced(pipeline: Any) -> None:
    """The graph is of one part of the UNet."""
    pipeline.unet.graph = pipeline.unet.graph.conv_out
    pipeline.unet.forward = lambda sample, *_, **__: (sample,)


# Casting


def one_layer_stored_in_fp32(pipeline: Any) -> None:
    layer = pipeline.unet.conv_in
    for hook in layer._diffusers_hook.hooks.values():
        hook.storage_dtype = torch.float32
    layer.to(torch.float32)


# VAE


def tiles_of_24_latents(pipeline: Any) -> None:
    vae = pipeline.vae
    vae.tile_sample_min_size = 24 * vae.tile_sample_min_size // vae.tile_latent_min_size
    vae.tile_latent_min_size = 24


def decoded_at_once(pipeline: Any) -> None:
    """The VAE says that it is tiled, and decodes all in one."""
    pipeline.vae.tiled_decode = lambda z, **_: DecoderOutput(pipeline.vae.decoder(z))


BF16 = torch.bfloat16
EVERY_OTHER = processors(AttnProcessor2_0, share=HALF)
HUGE = partial(SlicedAttnProcessor, 10**6)
SLICED = "attention_slicing"
FUSED = named("AttnProcessor", AttnProcessor2_0)
NAIVE = named("AttnProcessor2_0", AttnProcessor)
UNSLICED = named("SlicedAttnProcessor", AttnProcessor, slice_size=1)
UNSLICED_LATE = before_the_last_step(lambda p: p.disable_attention_slicing())
FP16_INSIDE = autocast(dtype=torch.float16)
ONLY_CONV_OUT = contiguous_but(lambda pipeline: pipeline.unet.conv_out)
ONLY_THE_VAE = contiguous_but(lambda pipeline: pipeline.vae)
CASES = [
    HalfDone("fp32", "under autocast", autocast(dtype=BF16), "ran in float32", called=True),
    HalfDone("autocast", "bf16 weights", lambda p: p.unet.to(BF16), "is torch.bfloat16, not torch"),
    HalfDone("autocast", "in fp16", FP16_INSIDE, "autocast dtype on", called=True),
    HalfDone("autocast", "left early", before_the_last_step(leave_autocast), "was", called=True),
    HalfDone("bf16", "computed in fp32", computed_in_fp32, "operations ran in", called=True),
    HalfDone("naive_attention", "half", EVERY_OTHER, "have no AttnProcessor"),
    HalfDone("naive_attention", "fused", FUSED, "softmaxes", called=True),
    HalfDone("sdpa", "naive", NAIVE, "separate softmaxes", called=True),
    HalfDone(SLICED, "of all heads", slice_of_all_heads, "take all heads"),
    HalfDone(SLICED, "half huge", processors(HUGE, share=HALF), "take all heads"),
    HalfDone(SLICED, "not sliced", UNSLICED, "softmax", called=True),
    HalfDone(SLICED, "undone before the last step", UNSLICED_LATE, "have no Sliced", called=True),
    HalfDone(
        "channels_last",
        "only conv_out",
        ONLY_CONV_OUT,
        "of the UNet have not their channels last, such as conv_in",
    ),
    HalfDone("channels_last", "the VAE", ONLY_THE_VAE, "of the UNet have not"),
    HalfDone("traced_unet", "not used", python_in_the_graphs_place, "ran in Python", called=True),
    HalfDone("traced_unet", "one part", a_part_traced, "the graph is of a Conv2d"),
    HalfDone("channels_last_traced_unet", "traced", lambda p: contiguous(p.unet), "have not"),
    HalfDone("layerwise_casting", "all but one", one_layer_stored_in_fp32, "1 of "),
    HalfDone("vae_slicing", "off", lambda p: p.vae.disable_slicing(), "slicing is off"),
    HalfDone("vae_tiling", "off", lambda p: p.vae.disable_tiling(), "tiling is off"),
    HalfDone("vae_tiling", "huge tiles", tiles_of_24_latents, "covers 56% of the", called=True),
    HalfDone("vae_tiling", "ignored", decoded_at_once, "covers 100% of the", called=True),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_half_done_technique_is_inactive(case: HalfDone) -> None:
    case.is_noticed(workload_of(case.technique), CpuDevice())
