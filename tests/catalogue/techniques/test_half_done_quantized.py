"""Weights that are quantized in part, beside the originals, or for nothing are not in effect.

Needs the group `quantization` of pyproject.toml; what is not installed is skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
import torch

from fixtures.catalogue.matrix import Scenario
from fixtures.catalogue.techniques import CATALOGUE
from fixtures.catalogue.techniques.quantized_storage import held_bytes, linear_layers
from fixtures.catalogue.workloads import WORKLOADS
from fixtures.devices.cpu import CpuDevice
from fixtures.devices.phases import denoiser
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.worker.observation import observe
from tests.support.differences import ssim
from tests.support.half_done import HalfDone, Spoil, brief
from tests.support.libraries import skipped_without_libraries

DIT, UNET = "storybook-dit", "storybook"
SIMULATED = ("torchao_int8_weight_only", "torchao_float8_weight_only", "quanto_int8")
LEAST_SSIM = {"": 0.90, "bitsandbytes_nf4": 0.76}
"""Of two steps, which 4 bits move most: the lowest of six seeds is 0.804, and another kind of
processor rounds otherwise."""


CPU = CpuDevice()


@cache
def originals(name: str) -> dict[str, Any]:
    """The linear layers before anything was quantized."""
    return linear_layers(denoiser(brief(name).load(torch.float32)))


def quantized(pipeline: Any, name: str) -> list[str]:
    """Those of which fewer bytes are stored than before."""
    layers = linear_layers(denoiser(pipeline))
    return [
        key for key, layer in originals(name).items() if held_bytes(layers[key]) < held_bytes(layer)
    ]


def last_left_out(pipeline: Any) -> None:
    """Put the original layer in the place of the last quantized one."""
    key = quantized(pipeline, DIT)[-1]
    parent, _, own = key.rpartition(".")
    denoiser(pipeline).get_submodule(parent)._modules[own] = originals(DIT)[key]


def kept_beside(pipeline: Any) -> None:
    """The quantized weights are there, and the original ones, too."""
    layers = linear_layers(denoiser(pipeline))
    for key in quantized(pipeline, DIT):
        layers[key].register_buffer("original", originals(DIT)[key].weight)


def computed_with_the_originals(pipeline: Any) -> None:
    """The quantized weights are there, and nobody uses them."""
    layers = linear_layers(denoiser(pipeline))
    for key in quantized(pipeline, DIT):
        layers[key].__dict__["forward"] = originals(DIT)[key].forward


SPOILS: Sequence[tuple[str, Spoil, str, bool]] = (
    ("all but one", last_left_out, "1 of ", False),
    ("beside the originals", kept_beside, "not stored in", False),
    ("for nothing", computed_with_the_originals, "times in the call, not ", True),
)
SCENARIOS = [
    Scenario(brief(name), technique)
    for name in (DIT, UNET)
    for technique in CATALOGUE
    if technique.family == "quantization" and technique.applies_to(WORKLOADS[name])
]
HALF_DONE = [
    HalfDone(scenario.technique.id, *spoilt)
    for scenario in SCENARIOS
    for spoilt in SPOILS
    if scenario.workload.name == DIT
]


def param(case: Scenario | HalfDone) -> Any:
    """Skipped where its library is not installed."""
    technique = CATALOGUE[case.technique] if isinstance(case, HalfDone) else case.technique
    name = case.id if isinstance(case, Scenario) else str(case)
    return pytest.param(case, id=name, marks=skipped_without_libraries(technique))


@pytest.mark.parametrize("case", [*map(param, HALF_DONE)])
def test_half_quantized_weights_are_inactive(case: HalfDone) -> None:
    case.is_noticed(brief(DIT), CPU)


@pytest.mark.parametrize("case", [*map(param, SCENARIOS)])
def test_weights_take_less_and_draw_almost_the_same(case: Scenario) -> None:
    plain = observe(case.reference, CPU)
    stored = observe(case, CPU)
    assert stored.inactive is None
    assert not stored.faults
    least = LEAST_SSIM.get(case.technique.id, LEAST_SSIM[""])
    assert least < ssim(stored.images, plain.images) < 1
    assert stored.component_peak_bytes["denoiser"] < plain.component_peak_bytes["denoiser"]
    # Leaving puts everything back: the next fp32 image is the one before, to the bit.
    assert (observe(case.reference, CPU).images == plain.images).all()


@pytest.mark.parametrize("case", [*map(param, SCENARIOS)])
def test_the_simulated_device_draws_it_or_says_why_not(case: Scenario) -> None:
    device = SimulatedDevice()
    if case.technique.id not in SIMULATED:
        assert "simulated tensor" in str(case.unsupported(device))
        return
    half, stored = observe(case.with_technique("fp16"), device), observe(case, device)
    assert stored.inactive is None
    assert not stored.faults
    assert LEAST_SSIM[""] < ssim(stored.images, half.images) < 1
    # Before the denoiser works there are weights, and what the text encoder made.
    weights = [it.component_peak_bytes["text_encoder"] for it in (half, stored)]
    linear_bytes = sum(map(held_bytes, originals(case.workload.name).values())) / 2
    assert weights[0] - weights[1] == pytest.approx(linear_bytes / 2, rel=0.12)
