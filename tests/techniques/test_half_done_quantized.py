"""Weights that are quantized in part, beside the originals, or for nothing are not in effect.

Needs the group `quantization` of pyproject.toml; what is not installed is skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import pytest
import torch

from fixtures.devices.cpu import CpuDevice
from fixtures.devices.phases import denoiser
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.measuring.observation import observe
from fixtures.scenarios import Scenario
from fixtures.techniques import CATALOGUE
from fixtures.techniques.quantized_storage import held_bytes, linear_layers
from fixtures.verdicts.similarity import ssim
from fixtures.workloads import WORKLOADS
from tests.support.half_done import Spoil, before_the_last_step, brief, complaint
from tests.support.libraries import skipped_without_libraries

DIT, UNET = "storybook-dit", "storybook"
SIMULATED = ("torchao_int8_weight_only", "torchao_float8_weight_only", "quanto_int8")
EVERY, EVERY_OTHER, LAST = slice(None), slice(None, None, 2), slice(-1, None)


@pytest.fixture(scope="module")
def cpu() -> CpuDevice:
    return CpuDevice()


@cache
def originals(name: str) -> dict[str, Any]:
    """The linear layers before anything was quantized."""
    return linear_layers(denoiser(brief(name).load(torch.float32)))


def quantized(pipeline: Any, name: str) -> list[str]:
    """Those of which fewer bytes are stored than before."""
    layers = linear_layers(denoiser(pipeline))
    return [
        key for key, one in originals(name).items() if held_bytes(layers[key]) < held_bytes(one)
    ]


def left_out(name: str, share: slice) -> Spoil:
    """Put original layers in the place of some of the quantized ones."""

    def spoil(pipeline: Any) -> None:
        model = denoiser(pipeline)
        for key in quantized(pipeline, name)[share]:
            parent, _, own = key.rpartition(".")
            model.get_submodule(parent)._modules[own] = originals(name)[key]

    return spoil


def kept_beside(name: str, pipeline: Any) -> None:
    """The quantized weights are there, and the original ones, too."""
    layers = linear_layers(denoiser(pipeline))
    for key in quantized(pipeline, name):
        layers[key].register_buffer("original", originals(name)[key].weight)


def computed_with_the_originals(name: str, pipeline: Any) -> None:
    """The quantized weights are there, and nobody uses them."""
    layers = linear_layers(denoiser(pipeline))
    for key in quantized(pipeline, name):
        layers[key].__dict__["forward"] = originals(name)[key].forward


CASES: Sequence[tuple[str, str, Spoil, str]] = (
    (DIT, "half", left_out(DIT, EVERY_OTHER), "linear layers of the denoiser take more than"),
    (DIT, "all but one", left_out(DIT, LAST), "1 of "),
    (DIT, "not at all", left_out(DIT, EVERY), "linear layers of the denoiser take more than"),
    (DIT, "beside the originals", partial(kept_beside, DIT), "take more than"),
    (DIT, "for nothing", partial(computed_with_the_originals, DIT), "times in the call, not "),
    (UNET, "undone before the last step", before_the_last_step(left_out(UNET, EVERY)), "take more"),
)


def scenario_param(scenario: Scenario, *more: Any) -> Any:
    """A scenario and what belongs to it, skipped where its library is not installed."""
    return pytest.param(
        *(scenario, *more),
        id="-".join((scenario.id, *(one for one in more[:1] if isinstance(one, str)))),
        marks=skipped_without_libraries(scenario.technique),
    )


SCENARIOS = [
    Scenario(brief(name), technique)
    for name in (DIT, UNET)
    for technique in CATALOGUE
    if technique.family == "quantization" and technique.applies_to(WORKLOADS[name])
]


@pytest.mark.parametrize(
    ("case", "how", "spoil", "says"),
    [
        scenario_param(scenario, *more)
        for scenario in SCENARIOS
        for name, *more in CASES
        if name == scenario.workload.name
    ],
)
def test_half_quantized_weights_are_inactive(
    case: Scenario, how: str, spoil: Spoil, says: str, cpu: CpuDevice
) -> None:
    reason = complaint(case.technique.id, case.workload, cpu, spoil)
    assert reason is not None, how
    assert says in reason
    assert "\n" not in reason


@pytest.mark.parametrize("case", list(map(scenario_param, SCENARIOS)))
def test_weights_take_less_and_draw_almost_the_same(case: Scenario, cpu: CpuDevice) -> None:
    plain = observe(case.reference, cpu)
    found = observe(case, cpu)
    assert found.inactive is None
    assert not found.faults
    assert 0.9 < ssim(found.images, plain.images) < 1
    assert found.component_peak_bytes["denoiser"] < plain.component_peak_bytes["denoiser"]
    # Leaving puts everything back: the next fp32 image is the one before, to the bit.
    assert (observe(case.reference, cpu).images == plain.images).all()


@pytest.mark.parametrize("case", list(map(scenario_param, SCENARIOS)))
def test_the_simulated_device_draws_it_or_says_why_not(case: Scenario) -> None:
    device = SimulatedDevice()
    if case.technique.id not in SIMULATED:
        assert "simulated tensor" in str(case.unsupported(device))
        return
    half, found = observe(case.with_technique("fp16"), device), observe(case, device)
    assert found.inactive is None
    assert not found.faults
    assert 0.9 < ssim(found.images, half.images) < 1
    # Before the denoiser works there are weights, and what the text encoder made.
    weights = [one.component_peak_bytes["text_encoder"] for one in (half, found)]
    linear_bytes = sum(map(held_bytes, originals(case.workload.name).values())) / 2
    assert weights[0] - weights[1] == pytest.approx(linear_bytes / 2, rel=0.12)
