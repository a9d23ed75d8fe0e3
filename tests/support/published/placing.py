"""How published runs place a pipeline where no technique of the suite does it like them.

Each takes the pipeline and the device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from fixtures.workloads.random_weights import random_model

Place = Callable[[Any, torch.device], object]


def on_device(pipeline: Any, device: torch.device) -> None:
    pipeline.to(device)


def model_offload(pipeline: Any, device: torch.device) -> None:
    pipeline.enable_model_cpu_offload(device=device)


def vae_tiling(pipeline: Any, device: torch.device) -> None:
    pipeline.to(device)
    pipeline.vae.enable_tiling()


def tiny_vae(pipeline: Any, device: torch.device) -> None:
    from diffusers import AutoencoderTiny

    pipeline.vae = random_model(AutoencoderTiny, torch.float16)
    pipeline.to(device)


def fused(pipeline: Any, device: torch.device) -> None:
    """With the projections of query, key and value in one matrix; the three others stay."""
    pipeline.to(device)
    pipeline.fuse_qkv_projections()


def in_fp16(place: Place) -> Place:
    """The same with the pipeline cast as a whole, also what a load in fp16 keeps in fp32."""

    def placed(pipeline: Any, device: torch.device) -> None:
        pipeline.to(torch.float16)
        place(pipeline, device)

    return placed


def fp8(place: Place) -> Place:
    """The same with the transformer's weights stored in fp8, which are cast layer by layer."""

    def placed(pipeline: Any, device: torch.device) -> None:
        pipeline.transformer.enable_layerwise_casting(
            storage_dtype=torch.float8_e4m3fn, compute_dtype=torch.bfloat16
        )
        place(pipeline, device)

    return placed


def naive(pipeline: Any, device: torch.device) -> None:
    """With whole score matrices in UNet and VAE, as before diffusers 0.12."""
    from diffusers.models.attention_processor import AttnProcessor

    for model in (pipeline.unet, pipeline.vae):
        model.set_attn_processor(AttnProcessor())
    pipeline.to(device)


def naive_unet(place: Place) -> Place:
    """The same with whole score matrices in the UNet."""

    def placed(pipeline: Any, device: torch.device) -> None:
        pipeline.unet.set_default_attn_processor()
        place(pipeline, device)

    return placed


def sliced_sequential(pipeline: Any, device: torch.device) -> None:
    """Head by head in the UNet, every leaf for itself."""
    pipeline.enable_attention_slicing(1)
    pipeline.enable_sequential_cpu_offload(device=device)


def transformer_by_blocks(pipeline: Any, device: torch.device) -> None:
    """The transformer in groups of one block on a stream; the rest is on the device."""
    for name, component in pipeline.components.items():
        if isinstance(component, torch.nn.Module) and name != "transformer":
            component.to(device)
    pipeline.transformer.enable_group_offload(
        onload_device=device, offload_type="block_level", num_blocks_per_group=1, use_stream=True
    )


def _by_leaves(model: torch.nn.Module, device: torch.device, *, stream: bool = False) -> None:
    from diffusers.hooks import apply_group_offloading

    apply_group_offloading(
        model, onload_device=device, offload_type="leaf_level", use_stream=stream
    )


def _by_blocks(model: torch.nn.Module, device: torch.device, blocks: int) -> None:
    from diffusers.hooks import apply_group_offloading

    apply_group_offloading(
        model, onload_device=device, offload_type="block_level", num_blocks_per_group=blocks
    )


def by_kind(pipeline: Any, device: torch.device) -> None:
    """The transformer by leaves on a stream, the text encoder by blocks, the VAE by leaves."""
    _by_leaves(pipeline.transformer, device, stream=True)
    _by_blocks(pipeline.text_encoder, device, 2)
    _by_leaves(pipeline.vae, device)


def around_vae(pipeline: Any, device: torch.device) -> None:
    """Transformer by leaves on a stream, text encoder by blocks, the VAE on the device in fp32."""
    _by_leaves(pipeline.transformer, device, stream=True)
    _by_blocks(pipeline.text_encoder, device, 4)
    pipeline.vae.to(device, torch.float32)
