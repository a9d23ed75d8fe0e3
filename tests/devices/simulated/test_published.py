"""docs/published.csv: published figures of memory beside ours, some of which are computed again.

The commit whose code compared them all is named in docs/simulated.md.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from fixtures.catalogue.techniques import CATALOGUE
from fixtures.catalogue.workloads import WORKLOADS
from fixtures.catalogue.workloads.random_weights import random_model
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.devices.simulated.profiles import find_card
from fixtures.records.units import GIB
from fixtures.settings import REPOSITORY
from fixtures.worker.trial import try_configuration

with (REPOSITORY / "docs/published.csv").open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file))
UNITS = {"GiB": GIB, "GB": 10**9, "MiB": 2**20}
Script = Callable[[torch.device], Callable[[], object]]
"""Places something on the device, and gives its call."""


def taken(script: Script, card: str) -> dict[str, float]:
    """Bytes after loading, and the peak of the call."""
    profile = find_card(card)
    device = SimulatedDevice(profile, trial=True)
    with device.entered(), torch.no_grad():
        call = script(device.torch_device)
        simulation = device._simulation
        assert simulation is not None
        memory = simulation.memory
        loaded, reserved = memory.allocator.allocated_bytes, memory.allocator.reserved_bytes
        call()
        assert memory.requests is not None
        peak = memory.requests.replay(profile.memory_bytes).peak_allocated_bytes
    return {"loaded": loaded, "loaded, reserved": reserved, "allocated": peak}


def called(workload: str, *techniques: str, card: str) -> dict[str, float]:
    """Bytes of a call, as `nox -s fit` tries it."""
    profile = find_card(card)
    device = SimulatedDevice(profile, trial=True)
    chosen = [CATALOGUE[name] for name in techniques]
    configuration = try_configuration(WORKLOADS[workload], chosen, device)
    assert device.asked is not None
    peak = device.asked.requests.replay(profile.memory_bytes).peak_allocated_bytes
    return {"allocated": peak, "fit": configuration.needed_bytes}


def flux_alone(device: torch.device) -> Callable[[], object]:
    pipeline: Any = WORKLOADS["flux"].source("", torch.bfloat16)
    pipeline.to(device)
    return lambda: pipeline


def vae_of_qwen_image(way: str, *shape: int) -> Script:
    def script(device: torch.device) -> Callable[[], object]:
        from diffusers import AutoencoderKLQwenImage

        vae: Any = random_model(AutoencoderKLQwenImage, torch.float16).to(device)
        return lambda: getattr(vae, way)(
            torch.randn(shape, dtype=torch.float16, device=device), return_dict=False
        )

    return script


ENCODE = partial(vae_of_qwen_image, "encode", 1, 3, 1)
DECODE = partial(vae_of_qwen_image, "decode", 1, 16, 1)
RUNS: dict[str, Callable[[], dict[str, float]]] = {
    "VAE of Qwen-Image fp16, encode 832x1248": partial(taken, ENCODE(832, 1248), "rtx-4090"),
    "VAE of Qwen-Image fp16, decode 2048x2048": partial(taken, DECODE(256, 256), "rtx-4090"),
    "flux": partial(taken, flux_alone, "h100"),
    "sd15, attention_slicing": partial(called, "sd15", "attention_slicing", card="titan-rtx"),
    "sd15, batch 1, fp32 + naive_attention": partial(
        called, "sd15", "fp32", "naive_attention", card="9.62GiB"
    ),
}
"""Of other kinds each, and small; each is compared with the rows of what it gives."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("run", RUNS)
def test_ours_is_what_the_simulated_card_says(run: str) -> None:
    figures = RUNS[run]()
    rows = {kind: row for row in ROWS for kind in figures if row["figure"] == f"{run}: {kind}"}
    assert rows
    for kind, row in rows.items():
        if kind == "fit":
            assert row["ours"].startswith(f"needs {figures[kind] / GIB:.2f} of ")
        else:
            unit = row["ours"].split()[1]
            assert row["ours"] == f"{figures[kind] / UNITS[unit]:.3f} {unit}"
