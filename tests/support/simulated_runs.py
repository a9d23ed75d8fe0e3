"""Simulated runs of a small Stable Diffusion, for the tests of the simulated device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from fixtures.catalogue.techniques import CATALOGUE
from fixtures.catalogue.workloads import WORKLOADS, Workload
from fixtures.catalogue.workloads.base import EMBEDDED
from fixtures.catalogue.workloads.images import SD15
from fixtures.catalogue.workloads.twins import SMALL
from fixtures.devices import Trace
from fixtures.devices.simulated.device import SimulatedDevice

Spoil = Callable[[Any], None]
SIDE_PX = 128
TINY = {
    **SMALL["sd15"].configs,
    "unet": {
        **SMALL["sd15"].configs["unet"],
        "block_out_channels": (32,),
        "down_block_types": ("CrossAttnDownBlock2D",),
        "up_block_types": ("CrossAttnUpBlock2D",),
    },
    "vae": {
        **SMALL["sd15"].configs["vae"],
        "block_out_channels": (32, 32, 32),
        "down_block_types": ("DownEncoderBlock2D",) * 3,
        "up_block_types": ("UpDecoderBlock2D",) * 3,
        "sample_size": SIDE_PX // 2,
    },
}
"""One level in the place of four: the simulation takes its time by the operation."""


def small(scheduler: str = "DDIMScheduler", **call: Any) -> Workload:
    """The `sd15` workload at a fraction of its width, 128x128 px, three steps."""
    sd15 = WORKLOADS["sd15"]
    changes = {"width": SIDE_PX, "height": SIDE_PX, "steps": 3, **call}
    return replace(
        sd15,
        name="small",
        call=replace(sd15.call, **changes),
        source=replace(SD15, configs=TINY).changed(
            model_index={"scheduler": ["diffusers", scheduler]}
        ),
    )


def small_drawing(**call: Any) -> Workload:
    """The same with values, 64x64 px, two steps: its random weights pass for stored ones."""
    changes = {"width": 64, "height": 64, "steps": 2, **call}
    return replace(small(**changes), default_weights=EMBEDDED)


@cache
def shared_device() -> SimulatedDevice:
    """One for all, as in a run: what it knows of an operation it keeps."""
    return SimulatedDevice()


@cache
def shared_workload() -> Workload:
    """One for all that run on the shared device: weights that it keeps belong to that."""
    return small()


def simulate(
    technique: str = "fp16",
    spoil: Spoil | None = None,
    workload: Workload | None = None,
    device: SimulatedDevice | None = None,
    **changes: Any,
) -> Trace:
    """What the simulation books of one warm call; `spoil` changes the pipeline before it."""
    if workload is None:
        workload = shared_workload() if device is None else small()
    device = device or shared_device()
    with device.entered():
        with CATALOGUE[technique].applied(workload, device) as pipeline:
            if spoil is not None:
                spoil(pipeline)
            workload.draw(pipeline, steps=1)
            with device.observe(pipeline) as trace:
                workload.draw(pipeline, **changes)
            del pipeline
        device.release()
    return trace


@cache
def simulated(technique: str = "fp16") -> Trace:
    """What `simulate` gives of it, once for all."""
    return simulate(technique)
