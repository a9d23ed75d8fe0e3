"""Figures that the second rule had not seen: the VAE of Qwen-Image at every other size.

`python -m tests.support.published.second` prints their tables of docs/simulated.md, 2 minutes.
"""

from __future__ import annotations

import warnings

import torch

from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.records.units import GIB
from tests.support.published.vaes import Way, call_qwen_vae, qwen_vae

PROFILE = "rtx-4090"
ALLOCATED_GIB: dict[tuple[Way, int, int], float] = {
    ("decode", 768, 768): 2.563,
    ("decode", 832, 1248): 4.331,
    ("decode", 1280, 1280): 6.693,
    ("decode", 1536, 1024): 6.434,
    ("decode", 1536, 1536): 9.532,
    ("decode", 1792, 1792): 12.884,
    ("encode", 768, 768): 1.724,
    ("encode", 832, 1248): 2.854,
    ("encode", 1088, 1920): 5.498,
    ("encode", 1280, 1280): 4.364,
    ("encode", 1536, 1024): 4.199,
}
"""By way, height and width in pixels: `max_memory_allocated`, of InvokeAI #9305."""
RESERVED_GIB: dict[tuple[Way, int, int], float] = {
    ("decode", 512, 512): 1.311,
    ("decode", 768, 768): 2.992,
    ("decode", 832, 1248): 5.211,
    ("decode", 1024, 1024): 5.254,
    ("decode", 1088, 1920): 10.408,
    ("decode", 1280, 1280): 8.188,
    ("decode", 1536, 1024): 7.857,
    ("decode", 1536, 1536): 11.736,
    ("decode", 1792, 1792): 15.949,
    ("decode", 2048, 2048): 20.799,
    ("encode", 512, 512): 0.711,
    ("encode", 768, 768): 1.594,
    ("encode", 832, 1248): 2.824,
    ("encode", 1024, 1024): 2.848,
    ("encode", 1088, 1920): 5.672,
    ("encode", 1280, 1280): 4.459,
    ("encode", 1536, 1024): 4.281,
    ("encode", 1536, 1536): 6.396,
}
"""The same: by how much `max_memory_reserved` rose over what was reserved before the call."""


def peaks_gib(way: Way, height_px: int, width_px: int) -> tuple[float, float, float]:
    """Exact and modelled allocated peak, and the rise of what is reserved, modelled."""
    device = SimulatedDevice(PROFILE)
    with device.entered(), torch.no_grad():
        vae = qwen_vae(device.torch_device)
        simulation = device._simulation
        assert simulation is not None
        memory = simulation.memory
        before_bytes = memory.modelled.peak_reserved_bytes
        call_qwen_vae(vae, way, height_px, width_px, device.torch_device)
        found = (
            memory.allocator.peak_allocated_bytes,
            memory.modelled.peak_allocated_bytes,
            memory.modelled.peak_reserved_bytes - before_bytes,
        )
        del vae
    exact, modelled, reserved = (size / GIB for size in found)
    return exact, modelled, reserved


def print_rows() -> None:
    """Print both tables."""
    for (way, height, width), published in ALLOCATED_GIB.items():
        exact, modelled, _ = peaks_gib(way, height, width)
        share = f"{modelled / published - 1:+.1%}"
        print(
            f"| {way} {height}x{width} | {published} | {exact:.3f} | {modelled:.3f} | {share} |",
            flush=True,
        )
    for (way, height, width), published in RESERVED_GIB.items():
        _, _, reserved = peaks_gib(way, height, width)
        share = f"{reserved / published - 1:+.1%}"
        print(f"| {way} {height}x{width} | {published} | {reserved:.3f} | {share} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print_rows()
