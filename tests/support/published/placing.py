"""How the published runs place a pipeline; each takes the pipeline and the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Place = Callable[[Any, torch.device], object]


def on_device(pipeline: Any, device: torch.device) -> None:
    pipeline.to(device)


def model_offload(pipeline: Any, device: torch.device) -> None:
    pipeline.enable_model_cpu_offload(device=device)


def sequential_offload(pipeline: Any, device: torch.device) -> None:
    pipeline.enable_sequential_cpu_offload(device=device)


def group_offload(pipeline: Any, device: torch.device) -> None:
    """Of the transformer, by blocks of one on a stream; the rest is on the device."""
    for name, component in pipeline.components.items():
        if isinstance(component, torch.nn.Module) and name != "transformer":
            component.to(device)
    pipeline.transformer.enable_group_offload(
        onload_device=device, offload_type="block_level", num_blocks_per_group=1, use_stream=True
    )


def vae_slicing(pipeline: Any, device: torch.device) -> None:
    pipeline.to(device)
    pipeline.vae.enable_slicing()


def vae_slicing_sequential_offload(pipeline: Any, device: torch.device) -> None:
    pipeline.vae.enable_slicing()
    pipeline.enable_sequential_cpu_offload(device=device)


def vae_tiling(pipeline: Any, device: torch.device) -> None:
    pipeline.to(device)
    pipeline.vae.enable_tiling()


def fused(pipeline: Any, device: torch.device) -> None:
    """With the projections of query, key and value in one matrix; the three others stay."""
    pipeline.to(device)
    pipeline.fuse_qkv_projections()


def fp8(place: Place) -> Place:
    """The same with the transformer's weights stored in fp8, which are cast layer by layer."""

    def placed(pipeline: Any, device: torch.device) -> None:
        pipeline.transformer.enable_layerwise_casting(
            storage_dtype=torch.float8_e4m3fn, compute_dtype=torch.bfloat16
        )
        place(pipeline, device)

    return placed
