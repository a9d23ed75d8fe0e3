"""Published figures that no scenario of the suite has.

`python -m tests.support.published_elsewhere` prints their table of docs/simulated.md, some 2
minutes: one forward pass of a denoiser alone (diffusers' nightly benchmark), and batches of four
images (SDXL, 2023). Then it prints the figures that the rule of modelled peaks had not seen
(`tests.support.published`), another 7 minutes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.records.run import WHOLE
from fixtures.records.units import GIB
from fixtures.techniques.placement import LEAF
from fixtures.workloads import WORKLOADS, Workload, flux, sdxl
from fixtures.workloads.random_weights import random_model
from tests.support.published.rows import print_rows
from tests.support.simulated_runs import simulate

PROFILE = "a100-80gb"
"""The nightly table names no card; this one's cuBLAS workspace is the one of most cards."""
FORWARDS = 2


@dataclass(frozen=True)
class Denoiser:
    """A denoiser alone, as diffusers' nightly benchmark runs it: one forward pass in bf16."""

    make: Callable[[], Any]
    inputs: Callable[[torch.device], dict[str, Any]]


def _flux() -> Any:
    from diffusers import FluxTransformer2DModel

    return FluxTransformer2DModel(**flux.PUBLISHED["transformer"])


def _flux_inputs(device: torch.device) -> dict[str, Any]:
    def empty(*shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=torch.bfloat16, device=device)

    return {
        "hidden_states": empty(1, 4096, 64),
        "encoder_hidden_states": empty(1, 512, 4096),
        "pooled_projections": empty(1, 768),
        "img_ids": empty(4096, 3),
        "txt_ids": empty(512, 3),
        "timestep": torch.ones(1, dtype=torch.bfloat16, device=device),
        "guidance": torch.ones(1, dtype=torch.bfloat16, device=device),
    }


def _sdxl() -> Any:
    from diffusers import UNet2DConditionModel

    return UNet2DConditionModel(**sdxl.PUBLISHED["unet"])


def _sdxl_inputs(device: torch.device) -> dict[str, Any]:
    def empty(*shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=torch.bfloat16, device=device)

    return {
        "sample": empty(1, 4, 128, 128),
        "encoder_hidden_states": empty(1, 77, 2048),
        "timestep": torch.ones(1, dtype=torch.bfloat16, device=device),
        "added_cond_kwargs": {"text_embeds": empty(1, 1280), "time_ids": empty(1, 6)},
    }


DENOISERS = {"flux": Denoiser(_flux, _flux_inputs), "sdxl": Denoiser(_sdxl, _sdxl_inputs)}


def _resident(model: Any, device: torch.device) -> None:
    model.to(device)


def _fp8_storage(model: Any, device: torch.device) -> None:
    model.to(device)
    model.enable_layerwise_casting(storage_dtype=torch.float8_e4m3fn, compute_dtype=torch.bfloat16)


def _group_leaf_stream(model: Any, device: torch.device) -> None:
    model.enable_group_offload(
        onload_device=device,
        offload_device=torch.device("cpu"),
        offload_type=LEAF,
        use_stream=True,
        non_blocking=True,
    )


PLACED = {"bf16": _resident, "fp8": _fp8_storage, "group leaf, stream": _group_leaf_stream}


def denoiser_peak_gib(name: str, placed: str) -> float:
    """Peak allocated memory of forward passes of one denoiser alone, weights included."""
    denoiser = DENOISERS[name]
    device = SimulatedDevice(PROFILE)
    with device.entered(), torch.no_grad():
        model = random_model(denoiser.make, torch.bfloat16)
        PLACED[placed](model, device.torch_device)
        inputs = denoiser.inputs(device.torch_device)
        for _ in range(FORWARDS):
            model(**inputs)
        assert device._simulation is not None
        peak_bytes = device._simulation.memory.allocator.peak_allocated_bytes
        del model, inputs
    return peak_bytes / GIB


NIGHTLY = "diffusers' nightly benchmark, huggingface.co/datasets/diffusers/benchmarks, 2025"
NIGHTLY_GIB = {
    ("flux", "bf16"): (22.61, 22.64),
    ("flux", "fp8"): (22.18, 22.19),
    ("flux", "group leaf, stream"): (0.53, 0.56),
    ("sdxl", "bf16"): (5.05, 5.05),
    ("sdxl", "fp8"): (4.89, 4.89),
}
"""The lowest and the highest of the nights, GiB."""

SDXL_POST = "Hugging Face blog, 'Exploring simple optimizations for SDXL', A100-40GB, batch 4, 2023"
SDXL_POST_GIB = {
    "fp16": 21.72,
    "model_cpu_offload": 20.21,
    "sequential_cpu_offload": 19.91,
}
"""Rows in fp16 with fused attention, GiB; its first row, fp32 with plain attention, is not a
technique of the suite."""


def sdxl_of_four() -> Workload:
    """Four images in one call of SDXL."""
    workload = WORKLOADS["sdxl"]
    return replace(workload, call=replace(workload.call, batch=4, steps=3))


def batch_peak_gib(technique: str) -> float:
    """Peak allocated memory of a batch of four images by SDXL."""
    trace = simulate(technique, workload=sdxl_of_four(), device=SimulatedDevice("a100-40gb"))
    return trace.component_peak_bytes[WHOLE] / GIB


def _rows() -> Iterator[tuple[str, str, float, str]]:
    for (name, placed), (low, high) in NIGHTLY_GIB.items():
        nights = f"{low}" if low == high else f"{low} to {high}"
        ours = denoiser_peak_gib(name, placed)
        nearest = min(max(ours, low), high)
        yield f"denoiser of {name}, {placed}", nights, ours, f"{ours / nearest - 1:+.1%}"
    for technique, published in SDXL_POST_GIB.items():
        ours = batch_peak_gib(technique)
        yield f"sdxl, batch 4, {technique}", str(published), ours, f"{ours / published - 1:+.1%}"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for row, published, ours, deviation in _rows():
        print(f"| {row} | {published} | {ours:.3f} | {deviation} |", flush=True)
    print_rows()
