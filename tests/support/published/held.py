"""Published figures that are no peaks: what is held after loading, or after a call.

No workspace is in them, so they say nothing about the rule; they check the weights, and what is
kept after a call. `python -m tests.support.published.held` prints them, some half a minute.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.records.units import GIB
from fixtures.workloads import flux, sd3
from tests.support.published import images
from tests.support.published.figures import Counter
from tests.support.published.placing import Place, fp8, on_device

_PROFILE = "h100"
QUANTO, QUANTIZATION = "blog 'quanto-diffusers'", "blog 'diffusers-quantization'"
TORCHAO = "diffusers-torchao"


@dataclass(frozen=True)
class Held:
    """One published figure in GiB, of one H100; `batch` is None where nothing is called."""

    name: str
    published: float
    source: str
    load: Callable[[], Any]
    place: Place = on_device
    batch: int | None = None
    counter: Counter = "allocated"


def _flux() -> Any:
    return flux.SOURCE("", torch.bfloat16)


def _sd3() -> Any:
    return sd3.SOURCE("", torch.float16)


HELD = (
    Held("Flux bf16, loaded", 31.438, TORCHAO, _flux),
    Held("Flux bf16, loaded, reserved", 31.447, QUANTIZATION, _flux, counter="reserved"),
    Held(
        "Flux fp8, loaded, reserved", 23.682, QUANTIZATION, _flux, fp8(on_device), None, "reserved"
    ),
    Held("PixArt-Sigma fp16, after a call, batch 1", 12.086, QUANTO, images.pixart, batch=1),
    Held("PixArt-Sigma fp16, after a call, batch 4", 12.087, QUANTO, images.pixart, batch=4),
    Held("SD3 fp16, after a call, batch 1", 16.403, QUANTO, _sd3, batch=1),
)


def held_gib(held: Held) -> float:
    """What the simulated card holds then."""
    device = SimulatedDevice(_PROFILE)
    with device.entered(), torch.no_grad():
        pipeline = held.load()
        held.place(pipeline, device.torch_device)
        if held.batch is not None:
            images.square(pipeline, held.batch)
        assert device._simulation is not None
        allocator = device._simulation.memory.allocator
        allocated = held.counter == "allocated"
        # Nothing was freed while loading: the peak of the reserved memory is what is reserved.
        held_bytes = allocator.allocated_bytes if allocated else allocator.peak_reserved_bytes
        del pipeline
    return held_bytes / GIB


def print_held() -> None:
    """Print the table of docs/simulated.md."""
    for held in HELD:
        ours = held_gib(held)
        print(
            f"| {held.name} | {held.published:g} | {ours:.3f} | {ours / held.published - 1:+.1%} | "
            f"{held.source} |",
            flush=True,
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print_held()
