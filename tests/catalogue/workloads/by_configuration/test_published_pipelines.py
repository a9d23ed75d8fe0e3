"""Published pipelines of many classes: full size, by their configurations alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fixtures.catalogue.techniques import CATALOGUE
from fixtures.catalogue.workloads.by_configuration.workload import workload_of_folder
from fixtures.catalogue.workloads.composition import composition_of
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.records.run import WHOLE
from tests.support.configurations import FULL_SIZE, write_pipeline

# What pipelines warn of concerns packages under test; a pipeline may be old.
pytestmark = pytest.mark.filterwarnings("default")

PIPELINES: dict[str, Any] = FULL_SIZE["pipelines"]
QUICK = ("SanaPipeline", "StableDiffusionXLImg2ImgPipeline")
TRIED = [*QUICK, *[name for name in [*PIPELINES][4::8] if name not in QUICK]]
"""Every eighth."""
STEPS = 2
REFUSED = {
    # https://github.com/huggingface/diffusers/issues/14008
    "StableCascadeDecoderPipeline": "which is of a foreign library",
    "VisualClozePipeline": "which is made of other pipelines",
}
"""Which of them are not answered, and words of the reason that is given."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in TRIED]
)
def test_a_published_pipeline_is_answered_or_refused_with_its_reason(
    name: str, tmp_path: Path
) -> None:
    reason, peak_bytes = "", 0
    try:
        folder = write_pipeline(name, tmp_path / "pipeline", FULL_SIZE)
        workload = workload_of_folder(str(folder)).by_configuration
        workload = replace(workload, call=replace(workload.call, steps=STEPS))
        device = SimulatedDevice()
        with (
            device.entered(),
            CATALOGUE["bf16"].applied(workload, device) as pipeline,
            device.observe(pipeline) as trace,
        ):
            workload.draw(pipeline)
        peak_bytes = trace.component_peak_bytes[WHOLE]
    except Exception as error:  # a refusal, or whatever the libraries raise
        reason = str(error)
    assert REFUSED.get(name, "") in reason
    assert (peak_bytes > 0) == (name not in REFUSED), reason


def test_every_configuration_has_a_source() -> None:
    named = [component[2] for component in FULL_SIZE["components"].values() if len(component) > 2]
    for source in [*named, *(pipeline["source"] for pipeline in PIPELINES.values())]:
        key, _, path = source.partition(":")
        assert path, source
        assert key in {*FULL_SIZE["sources"], "https"}, source


def test_a_prior_is_a_denoiser(tmp_path: Path) -> None:
    folder = write_pipeline("StableCascadePriorPipeline", tmp_path / "mine", FULL_SIZE)
    denoiser = composition_of(folder).denoiser
    assert denoiser is not None
    assert denoiser.__name__ == "StableCascadeUNet"


def test_a_pipeline_that_makes_a_model_of_parts_is_made_without_weights(tmp_path: Path) -> None:
    """AnimateDiff copies a UNet and a motion adapter into one."""
    folder = write_pipeline("AnimateDiffPipeline", tmp_path / "mine", FULL_SIZE)
    assert workload_of_folder(str(folder)).call.frames == 16
