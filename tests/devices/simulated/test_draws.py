"""The simulated device with values draws what the CPU draws; its figures are those without them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch

from fixtures.devices.cpu import CpuDevice
from fixtures.devices.simulated.allocator import ROUNDING_BYTES
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.measuring.observation import Observation, observe
from fixtures.records.counts import BYTES_MOVED, OPERATIONS
from fixtures.records.images import Images
from fixtures.records.run import WHOLE
from fixtures.scenarios import Scenario, find_scenario
from fixtures.techniques import CATALOGUE
from fixtures.verdicts.similarity import largest_difference, ssim

STEPS = 3


def brief(technique: str) -> Scenario:
    """The scenario of storybook, with few steps."""
    scenario = find_scenario("storybook", technique)
    workload = scenario.workload
    return replace(scenario, workload=replace(workload, call=replace(workload.call, steps=STEPS)))


@pytest.fixture(scope="module")
def drawn_by_cpu() -> Images:
    """The fp32 image."""
    return observe(brief("fp32"), CpuDevice()).images


@pytest.mark.parametrize(
    "technique",
    [
        "autocast",
        "fp16",
        "naive_attention",
        "attention_slicing",
        "sdpa",
        "channels_last",
        "sequential_cpu_offload",
        "model_cpu_offload",
        "group_offload_leaf",
        "group_offload_block",
        "group_offload_stream",
        "sequential_cpu_offload_attention_slicing",
    ],
)
def test_a_technique_draws_the_cpu_s_image_and_needs_what_it_needs_without_values(
    technique: str, drawn_by_cpu: Images
) -> None:
    found = observe(brief(technique), SimulatedDevice(draws=True))
    assert ssim(found.images, drawn_by_cpu) > 0.999
    assert found.inactive is None
    assert_same_figures(found, observe(brief(technique), SimulatedDevice()))


@pytest.mark.parametrize("technique", ["fp32", "tf32", "cudnn_benchmark"])
def test_fp32_is_the_cpu_s_but_for_the_order_of_sums(technique: str, drawn_by_cpu: Images) -> None:
    found = observe(brief(technique), SimulatedDevice(draws=True))
    assert largest_difference(found.images, drawn_by_cpu) < 1e-5


def test_less_precise_storage_is_seen(drawn_by_cpu: Images) -> None:
    """bf16 and fp8 keep fewer bits than fp16."""
    for technique, least, most in (("bf16", 0.99, 0.9995), ("layerwise_casting", 0.97, 0.995)):
        found = observe(brief(technique), SimulatedDevice(draws=True))
        assert least < ssim(found.images, drawn_by_cpu) < most
        assert_same_figures(found, observe(brief(technique), SimulatedDevice()))


def assert_same_figures(drawn: Observation, undrawn: Observation) -> None:
    """Values change no figure."""
    assert drawn.component_peak_bytes == undrawn.component_peak_bytes
    assert drawn.counts == undrawn.counts
    assert drawn.bound_s == undrawn.bound_s
    assert drawn.host_work == undrawn.host_work
    assert drawn.timeline == undrawn.timeline


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
    found = observe(brief(technique), SimulatedDevice(draws=True))
    plain = observe(brief(untraced), SimulatedDevice(draws=True))
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
    scenario, device = brief(technique), SimulatedDevice(draws=True)
    with device.entered(), scenario.technique.applied(scenario.workload, device) as pipeline:
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
