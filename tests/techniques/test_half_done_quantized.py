"""Weights that are quantized in part, beside the originals, or for nothing are not in effect.

Needs the group `quantization` of pyproject.toml; what is not installed is skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import pytest
import torch

from fixtures.devices.cpu import CpuDevice
from fixtures.devices.phases import denoiser
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.measuring.observation import observe
from fixtures.scenarios import Scenario
from fixtures.techniques import CATALOGUE, Technique
from fixtures.techniques.libraries import missing_library
from fixtures.techniques.quantized_storage import held_bytes, linear_layers
from fixtures.verdicts.similarity import ssim
from fixtures.workloads import WORKLOADS, Workload
from tests.support.half_done import STEPS, Spoil, before_the_last_step, complaint, nothing

QUANTIZED = [
    pytest.param(
        technique,
        id=technique.id,
        marks=pytest.mark.skipif(
            any(map(missing_library, technique.libraries)),
            reason=f"needs {' and '.join(technique.libraries)}",
        ),
    )
    for technique in CATALOGUE
    if technique.family == "quantization"
]
SIMULATED = ("torchao_int8_weight_only", "torchao_float8_weight_only", "quanto_int8")
EVERY, EVERY_OTHER, LAST = slice(None), slice(None, None, 2), slice(-1, None)


@pytest.fixture(scope="module")
def cpu() -> CpuDevice:
    return CpuDevice()


@cache
def brief(name: str) -> Workload:
    workload = WORKLOADS[name]
    return replace(workload, call=replace(workload.call, steps=STEPS))


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


DIT, UNET = "storybook-dit", "storybook"
CASES: Sequence[tuple[str, str, Spoil, str]] = (
    (DIT, "half", left_out(DIT, EVERY_OTHER), "linear layers of the denoiser take more than"),
    (DIT, "all but one", left_out(DIT, LAST), "1 of "),
    (DIT, "not at all", left_out(DIT, EVERY), "linear layers of the denoiser take more than"),
    (DIT, "beside the originals", partial(kept_beside, DIT), "take more than"),
    (DIT, "for nothing", partial(computed_with_the_originals, DIT), " 0 times in the call, not "),
    (UNET, "undone before the last step", before_the_last_step(left_out(UNET, EVERY)), "take more"),
)


@pytest.mark.parametrize("technique", QUANTIZED)
@pytest.mark.parametrize(("name", "how", "spoil", "says"), CASES, ids=lambda one: str(one)[:40])
def test_half_quantized_weights_are_inactive(
    technique: Technique, name: str, how: str, spoil: Spoil, says: str, cpu: CpuDevice
) -> None:
    reason = complaint(technique.id, brief(name), cpu, spoil)
    assert reason is not None, how
    assert says in reason
    assert "\n" not in reason


@pytest.mark.parametrize("technique", QUANTIZED)
@pytest.mark.parametrize("name", [DIT, UNET])
def test_quantized_in_full_it_is_active(technique: Technique, name: str, cpu: CpuDevice) -> None:
    assert complaint(technique.id, brief(name), cpu, nothing) is None


@pytest.mark.parametrize("technique", QUANTIZED)
@pytest.mark.parametrize("name", [DIT, UNET])
def test_weights_take_less_and_draw_almost_the_same(
    technique: Technique, name: str, cpu: CpuDevice
) -> None:
    workload = brief(name)
    plain = observe(Scenario(workload, CATALOGUE["fp32"]), cpu)
    found = observe(Scenario(workload, technique), cpu)
    assert found.inactive is None
    assert found.fault is None
    assert 0.9 < ssim(found.images, plain.images) < 1
    assert (found.images != plain.images).any()
    assert found.component_peak_bytes["denoiser"] < plain.component_peak_bytes["denoiser"]
    # Leaving puts everything back: the next fp32 image is the one before, to the bit.
    again = observe(Scenario(workload, CATALOGUE["fp32"]), cpu)
    assert (again.images == plain.images).all()


@pytest.mark.parametrize("technique", QUANTIZED)
def test_the_simulated_device_draws_it_or_says_why_not(technique: Technique) -> None:
    device = SimulatedDevice(draws=True)
    if technique.id not in SIMULATED:
        reason = technique.unsupported(device)
        assert reason is not None
        assert "simulated tensor" in reason
        return
    workload = brief(DIT)
    half = observe(Scenario(workload, CATALOGUE["fp16"]), device)
    found = observe(Scenario(workload, technique), device)
    assert found.inactive is None
    assert found.fault is None
    assert 0.9 < ssim(found.images, half.images) < 1
    # The linear layers of 12.3 MB in fp16 take half as much in 8 bits, and their scales.
    saved = half.component_peak_bytes["text_encoder"] - found.component_peak_bytes["text_encoder"]
    assert saved == pytest.approx(6.1e6, rel=0.02)
