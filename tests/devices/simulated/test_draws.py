"""The simulated device with values draws what the CPU draws; its figures are those without them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
import torch

from fixtures.catalogue.matrix import Scenario
from fixtures.catalogue.techniques import CATALOGUE
from fixtures.catalogue.workloads import Workload
from fixtures.devices.cpu import CpuDevice
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.records.images import Images
from fixtures.worker.observation import Observation, observe
from tests.support.differences import largest_difference, ssim
from tests.support.fake_scenarios import observations_on
from tests.support.scenarios import find_scenario
from tests.support.simulated_runs import shared_device, small_drawing

STEPS = 2


class WithoutValues(SimulatedDevice):
    """Where no tensor but a small one has values, however small the model."""

    def with_values(self) -> WithoutValues:
        return self


@cache
def without_values() -> WithoutValues:
    """One for all scenarios, as in a run."""
    return WithoutValues()


@cache
def workload_of(device: str) -> Workload:
    """The weights that a workload keeps belong to one device."""
    return small_drawing()


@cache
def drawn(technique: str) -> Observation:
    """What the device with values shows of a technique."""
    return observe(Scenario(workload_of("drawing"), CATALOGUE[technique]), shared_device())


@cache
def image_of_the_cpu() -> Images:
    """What the CPU draws."""
    return observe(Scenario(workload_of("cpu"), CATALOGUE["fp32"]), CpuDevice()).images


@pytest.mark.parametrize(
    "technique",
    # The stored pictures of simulated storybook hold the others.
    ["xformers", "group_offload_stream", "group_offload_disk"],
)
def test_a_technique_draws_the_cpu_s_image_and_needs_what_it_needs_without_values(
    technique: str,
) -> None:
    observation = drawn(technique)
    assert ssim(observation.images, image_of_the_cpu()) > 0.999
    assert observation.inactive is None
    assert not observation.faults
    if "offload" in technique:
        assert largest_difference(observation.images, drawn("fp16").images) == 0
    scenario = Scenario(workload_of("without values"), CATALOGUE[technique])
    without = observe(scenario, without_values())
    assert not without.images.any()
    assert observation.component_peak_bytes == without.component_peak_bytes
    assert observation.counts == without.counts
    assert observation.bound_ms == without.bound_ms
    assert observation.at_peak == without.at_peak
    assert observation.work == without.work


@pytest.mark.parametrize("technique", ["fp32", "tf32", "cudnn_benchmark"])
def test_fp32_is_the_cpu_s_but_for_the_order_of_sums(technique: str) -> None:
    assert largest_difference(drawn(technique).images, image_of_the_cpu()) < 1e-5


def test_the_frozen_reference_draws_the_same_there() -> None:
    """It runs in inference mode, and makes its own time steps: both are the device's matter."""
    scenario = find_scenario("storybook", "fp32")
    call = replace(scenario.workload.call, steps=STEPS)
    scenario = replace(scenario, workload=replace(scenario.workload, call=call))
    observations = observations_on(SimulatedDevice())
    images = observations.images(scenario)
    assert largest_difference(images, observations.frozen_images(scenario)) < 1e-5


def test_a_scenario_of_an_embedded_model_draws_and_of_any_other_weights_does_not() -> None:
    device = SimulatedDevice("rtx-4090")
    embedded, full = find_scenario("storybook", "fp32"), find_scenario("sd15", "fp32")
    own = find_scenario("storybook", "fp32", weights="random")
    view = embedded.device_view(device)
    assert view.missing("images") is None
    assert view.hardware == device.hardware
    assert embedded.device_view(device) is view, "weights that are kept belong to one mode"
    assert view.with_values() is view
    for other in (full, own):
        assert other.device_view(device) is device
        assert device.missing("images")


def test_a_weight_that_is_changed_on_the_device_changes_the_image() -> None:
    """Values are computed, not remembered: what offloading brings back is what is used."""
    scenario = Scenario(workload_of("drawing"), CATALOGUE["model_cpu_offload"])
    with scenario.running(shared_device()) as pipeline:
        with torch.no_grad():
            pipeline.unet.conv_in.weight.mul_(-20)
        images = scenario.workload.draw(pipeline, steps=STEPS)
        del pipeline
    assert ssim(images, image_of_the_cpu()) < 0.95
