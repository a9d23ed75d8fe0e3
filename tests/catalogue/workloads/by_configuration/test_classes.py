"""Classes of pipelines that the suite has no workload for, each from a folder without weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.catalogue.matrix import Scenario
from fixtures.catalogue.techniques import CATALOGUE
from fixtures.catalogue.techniques.registry import models
from fixtures.catalogue.workloads import Workload
from fixtures.catalogue.workloads.by_configuration.workload import workload_of_folder
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.records.counts import COMPUTE
from fixtures.records.run import WHOLE
from fixtures.worker.observation import observe
from tests.support.configurations import CLASSES, write_pipeline

# What pipelines warn of concerns packages under test; a pipeline may be old.
pytestmark = pytest.mark.filterwarnings("default")

STEPS = 2
MAX_PX = 64
MAX_FRAMES = 17
QUICK = {
    *("AnimateDiffPipeline", "DDIMPipeline", "LTXPipeline", "LongCatAudioDiTPipeline"),
    *("PixArtAlphaPipeline", "StableVideoDiffusionPipeline"),
}
"""A UNet and a transformer, images, videos and sounds; the others are tried by the long tests."""


@pytest.fixture(scope="module")
def device() -> SimulatedDevice:
    return SimulatedDevice()


def small(workload: Workload) -> Workload:
    """The same workload with a call that takes a moment."""
    call = workload.call
    width, height = min(call.width, MAX_PX), min(call.height, MAX_PX)
    frames = min(call.frames, MAX_FRAMES)
    changed = replace(call, width=width, height=height, frames=frames, steps=STEPS)
    return replace(workload, call=changed)


def technique_for(number: int, name: str) -> str:
    """Every other class in half precision, but one that hands its images to numpy as they are."""
    return "bf16" if number % 2 and name != "DDIMPipeline" else "fp32"


@pytest.mark.parametrize(
    ("name", "technique"),
    [
        pytest.param(
            name, technique_for(number, name), marks=() if name in QUICK else pytest.mark.long
        )
        for number, name in enumerate(CLASSES)
    ],
)
def test_a_class_runs_by_its_configurations_alone(
    name: str, technique: str, tmp_path: Path, device: SimulatedDevice
) -> None:
    folder = write_pipeline(name, tmp_path / name)
    assert not [*folder.rglob("*.safetensors"), *folder.rglob("*.bin")]
    workload = small(workload_of_folder(str(folder)).by_configuration)
    with device.entered(), CATALOGUE[technique].applied(workload, device) as pipeline:
        weights = [weight for model in models(pipeline).values() for weight in model.parameters()]
        with device.observe(pipeline) as trace:
            images = workload.draw(pipeline)
        places = {weight.device.type for weight in weights}
        size = sum(weight.nbytes for weight in weights)
    assert places == {"cuda"}
    assert trace.calls["denoiser"] >= STEPS
    assert trace.component_peak_bytes[WHOLE] > size
    assert trace.counts.total(COMPUTE) > 0
    assert (len(images) == 0) == (name == "LongCatAudioDiTPipeline")  # which draws sounds


@pytest.mark.parametrize("name", ["FluxImg2ImgPipeline", "StableDiffusionControlNetPipeline"])
def test_models_that_diffusers_leaves_on_the_accelerator_may_stay(
    name: str, tmp_path: Path, device: SimulatedDevice
) -> None:
    """A VAE that encodes first and a ControlNet: the call needs them out of order."""
    workload = small(workload_of_folder(str(write_pipeline(name, tmp_path / "mine"))))
    observed = observe(Scenario(workload, CATALOGUE["model_cpu_offload"]), device)
    assert observed.inactive is None
