"""Models that diffusers leaves on the accelerator, because the call needs them out of order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.measuring.observation import observe
from fixtures.scenarios import Scenario
from fixtures.techniques import CATALOGUE
from fixtures.workloads.by_configuration.workload import workload_of_folder
from tests.support.configurations import write_pipeline

# What pipelines warn of concerns packages under test.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.parametrize("name", ["FluxImg2ImgPipeline", "StableDiffusionControlNetPipeline"])
def test_a_vae_that_encodes_first_and_a_controlnet_may_stay(name: str, tmp_path: Path) -> None:
    workload = workload_of_folder(str(write_pipeline(name, tmp_path / "mine")))
    small = replace(workload, call=replace(workload.call, width=64, height=64))
    observed = observe(Scenario(small, CATALOGUE["model_cpu_offload"]), SimulatedDevice())
    assert observed.inactive is None
