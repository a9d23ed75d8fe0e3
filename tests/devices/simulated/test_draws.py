"""The simulated device with values draws what the CPU draws; its figures are those without them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch

from fixtures.devices.cpu import CpuDevice
from fixtures.devices.simulated.allocator import ROUNDING_BYTES
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.measuring.observation import Observation, observe
from fixtures.measuring.observations import Observations
from fixtures.records.counts import BYTES_MOVED, OPERATIONS
from fixtures.records.images import Images
from fixtures.records.run import WHOLE
from fixtures.scenarios import Scenario, find_scenario
from fixtures.techniques import CATALOGUE
from fixtures.verdicts.similarity import largest_difference, ssim

STEPS = 2


class WithoutValues(SimulatedDevice):
    """Where no tensor but a small one has values, however small the model."""

    def with_values(self) -> WithoutValues:
        return self


# One for all scenarios, as in a run: what it knows of an operation it keeps.


@cache
def drawing() -> SimulatedDevice:
    """The device that draws."""
    return SimulatedDevice()


@cache
def without_values() -> WithoutValues:
    """The same without values."""
    return WithoutValues()


def brief(technique: str, name: str = "storybook", steps: int = STEPS) -> Scenario:
    """The scenario of storybook, with few steps and two images at most."""
    scenario = find_scenario(name, technique)
    workload = scenario.workload
    call = replace(workload.call, steps=steps, batch=min(2, workload.call.batch))
    return replace(scenario, workload=replace(workload, call=call))


@pytest.fixture(scope="module")
def drawn_by_cpu() -> Images:
    """The fp32 image."""
    return observe(brief("fp32"), CpuDevice()).images


@pytest.fixture(scope="module")
def drawn_in_fp16() -> Images:
    """The image in fp16, by the simulated device."""
    return observe(brief("fp16"), drawing()).images


@pytest.mark.parametrize(
    "technique",
    [
        "autocast",
        "fp16",
        "naive_attention",
        "attention_slicing",
        "sdpa",
        "xformers",
        "channels_last",
        "sequential_cpu_offload",
        "model_cpu_offload",
        "group_offload_leaf",
        "group_offload_block",
        "group_offload_stream",
        "group_offload_disk",
        "group_offload_mixed",
        "sequential_cpu_offload_attention_slicing",
    ],
)
def test_a_technique_draws_the_cpu_s_image_and_needs_what_it_needs_without_values(
    technique: str, drawn_by_cpu: Images, drawn_in_fp16: Images
) -> None:
    found = observe(brief(technique), drawing())
    assert ssim(found.images, drawn_by_cpu) > 0.999
    assert found.inactive is None
    if "offload" in technique and "slicing" not in technique:
        assert largest_difference(found.images, drawn_in_fp16) == 0
    assert_same_figures(found, observe(brief(technique), without_values()))


@pytest.mark.parametrize(
    ("technique", "name"),
    [("vae_slicing", "storybook-batch8"), ("vae_tiling", "storybook-256")],
)
def test_with_xformers_the_vae_s_techniques_draw_the_cpu_s_image(technique: str, name: str) -> None:
    drawn = observe(brief(technique, name, steps=2), CpuDevice()).images
    scenario = brief(f"{technique}_xformers", name, steps=2)
    found = observe(scenario, drawing())
    assert ssim(found.images, drawn) > 0.999
    assert found.inactive is None
    assert_same_figures(found, observe(scenario, without_values()))


@pytest.mark.parametrize("technique", ["fp32", "tf32", "cudnn_benchmark"])
def test_fp32_is_the_cpu_s_but_for_the_order_of_sums(technique: str, drawn_by_cpu: Images) -> None:
    found = observe(brief(technique), drawing())
    assert largest_difference(found.images, drawn_by_cpu) < 1e-5


def test_less_precise_storage_is_seen(drawn_by_cpu: Images) -> None:
    """bf16 and fp8 keep fewer bits than fp16."""
    for technique, least, most in (("bf16", 0.99, 0.9995), ("layerwise_casting", 0.97, 0.995)):
        found = observe(brief(technique), drawing())
        assert least < ssim(found.images, drawn_by_cpu) < most
        assert_same_figures(found, observe(brief(technique), without_values()))


def assert_same_figures(drawn: Observation, undrawn: Observation) -> None:
    """Values change no figure."""
    assert drawn.images.any()
    assert not undrawn.images.any()
    assert drawn.component_peak_bytes == undrawn.component_peak_bytes
    assert drawn.counts == undrawn.counts
    assert drawn.bound_s == undrawn.bound_s
    assert drawn.host_work == undrawn.host_work
    assert drawn.timeline == undrawn.timeline


def test_the_frozen_reference_draws_the_same_there(drawn_by_cpu: Images) -> None:
    """It runs in inference mode, and makes its own time steps: both are the device's matter."""
    scenario = brief("fp32")
    observations = Observations(drawing())
    assert observations.difference(scenario, observations.frozen_images(scenario)) < 1e-5
    assert largest_difference(observations.frozen_images(scenario), drawn_by_cpu) < 1e-5


def test_a_scenario_of_an_embedded_model_draws_and_of_any_other_weights_does_not() -> None:
    device = SimulatedDevice("rtx-4090")
    embedded, full = find_scenario("storybook", "fp32"), find_scenario("sd15", "fp32")
    own = find_scenario("storybook", "fp32", weights="random")
    assert embedded.device_view(device).missing("images") is None
    assert embedded.device_view(device).hardware == device.hardware
    assert embedded.device_view(device) is embedded.device_view(device), (
        "weights that are kept belong to one mode"
    )
    assert embedded.device_view(device).with_values() is embedded.device_view(device)
    for other in (full, own):
        assert other.device_view(device) is device
        assert device.missing("images")


FEWER_A_STEP = {"arange": 1, "exp": 1, "div": 1, "mul": 2, "silu": 10}
"""TorchScript computes the frequencies of the time embedding once for all, and once a step what
each residual block does to the same embedding."""


@pytest.mark.parametrize(
    ("technique", "untraced"),
    [
        ("traced_unet", "sdpa"),
        ("channels_last_traced_unet", "channels_last"),
        ("model_cpu_offload_traced_unet", "model_cpu_offload"),
    ],
)
def test_a_traced_unet_draws_the_cpu_s_image_with_the_work_of_the_unet(
    technique: str, untraced: str, drawn_by_cpu: Images
) -> None:
    found = observe(brief(technique), drawing())
    plain = observe(brief(untraced), drawing())
    assert ssim(found.images, drawn_by_cpu) > 0.999
    assert found.inactive is None
    assert found.leak is None
    assert largest_difference(found.images, plain.images) == 0
    in_the_graph = Counter(found.counts.operations)
    in_the_graph.update({f"aten::{name}": STEPS * count for name, count in FEWER_A_STEP.items()})
    assert in_the_graph == plain.counts.operations
    for name in set(plain.counts.totals) - {OPERATIONS, BYTES_MOVED}:
        assert found.counts.totals[name] == plain.counts.totals[name]
    assert found.component_peak_bytes[WHOLE] <= plain.component_peak_bytes[WHOLE] + ROUNDING_BYTES


@pytest.mark.parametrize("technique", ["fp32", "traced_unet", "model_cpu_offload_traced_unet"])
def test_a_weight_that_is_changed_on_the_device_changes_the_image(
    technique: str, drawn_by_cpu: Images
) -> None:
    """Values are computed, not remembered: what offloading brings back is what is used."""
    scenario = brief(technique)
    with scenario.running(drawing()) as pipeline:
        with torch.no_grad():
            weights_of_the_first_convolution(pipeline.unet).mul_(1.5)
        images = scenario.workload.draw(pipeline, steps=STEPS)
        del pipeline
    assert ssim(images, drawn_by_cpu) < 0.95


def weights_of_the_first_convolution(unet: Any) -> torch.Tensor:
    """In the graph where there is one, which is all that the wrapper has."""
    model = getattr(unet, "graph", unet)
    weight: torch.Tensor = model.conv_in.weight
    return weight


def test_of_a_traced_unet_the_device_holds_the_graph_s_weights_alone() -> None:
    """The traced UNet goes at once, as reference counts let it: no collector runs here."""
    scenario, held_bytes = brief("traced_unet"), {}
    for name in ("fp16", "traced_unet"):
        device = SimulatedDevice(draws=True)
        with device.entered(), CATALOGUE[name].applied(scenario.workload, device) as pipeline:
            held_bytes[name] = torch.cuda.memory_allocated()
            del pipeline
    assert held_bytes["traced_unet"] == held_bytes["fp16"]
