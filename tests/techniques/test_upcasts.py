"""Half precision whose VAE its pipeline casts to fp32 is in effect; a forgotten cast is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from fixtures.devices.cpu import CpuDevice
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.techniques.precision import LOWERED_AGAIN
from fixtures.workloads import Workload
from fixtures.workloads.by_configuration.workload import workload_of_folder
from tests.support.configurations import write_pipeline
from tests.support.half_done import Spoil, complaint, complaint_at_rest, nothing
from tests.support.small_workloads import small_workload
from tests.techniques.test_half_done import upcast

TECHNIQUES = ("fp16", "bf16")


@cache
def workload_of(name: str) -> Workload:
    return small_workload(name)


def in_fp32(*parts: str) -> Spoil:
    """Cast components, or parts of them, to fp32."""

    def spoil(pipeline: Any) -> None:
        for part in parts:
            name, _, inside = part.partition(".")
            getattr(pipeline, name).get_submodule(inside).float()

    return spoil


def after(spoil: Spoil, then: Callable[[Any], object]) -> Spoil:
    def both(pipeline: Any) -> None:
        spoil(pipeline)
        then(pipeline)

    return both


def lower(*parts: str) -> Callable[[Any], None]:
    """Put parts of the VAE back into what the denoiser has."""

    def change(pipeline: Any) -> None:
        for part in parts:
            pipeline.vae.get_submodule(part.rstrip(".")).to(pipeline.unet.dtype)

    return change


def needs_no_upcast(pipeline: Any) -> None:
    pipeline.vae.register_to_config(force_upcast=False)


UPCAST = {
    "all of it": in_fp32("vae"),
    "as before diffusers 0.36": after(in_fp32("vae"), lower(*LOWERED_AGAIN)),
    "cast back": after(in_fp32("vae"), lower("")),
}


@pytest.mark.parametrize("technique", TECHNIQUES)
@pytest.mark.parametrize("how", UPCAST)
def test_a_vae_that_its_pipeline_upcasts_is_in_effect(how: str, technique: str) -> None:
    assert complaint_at_rest(technique, workload_of("sdxl"), CpuDevice(), UPCAST[how]) is None


FORGOTTEN = {
    "a part that is never lowered": (
        "sdxl",
        after(in_fp32("vae"), lower("decoder.up_blocks")),
        "vae.decoder.up_blocks.",
    ),
    "the decoder alone": ("sdxl", in_fp32("vae.decoder"), "vae.decoder."),
    "a VAE that needs no upcast": (
        "sdxl",
        after(in_fp32("vae"), needs_no_upcast),
        "vae.encoder.conv_in.weight is torch.float32",
    ),
    "a text encoder": ("sdxl", in_fp32("vae", "text_encoder_2"), "text_encoder_2."),
    "the denoiser": ("sdxl", in_fp32("unet"), "unet."),
    "all of it": (
        "sdxl",
        in_fp32("unet", "vae", "text_encoder", "text_encoder_2"),
        "is torch.float32",
    ),
    "the VAE of a pipeline that upcasts none": (
        "sd15",
        in_fp32("vae"),
        "vae.encoder.conv_in.weight is torch.float32",
    ),
}


@pytest.mark.parametrize("technique", TECHNIQUES)
@pytest.mark.parametrize("how", FORGOTTEN)
def test_what_was_forgotten_is_not_in_effect(how: str, technique: str) -> None:
    name, spoil, says = FORGOTTEN[how]
    said = complaint_at_rest(technique, workload_of(name), CpuDevice(), spoil)
    assert said is not None
    assert says in said


def test_a_vae_says_by_default_that_it_is_to_be_upcast() -> None:
    """So what it says means something only to a pipeline that asks for it."""
    assert workload_of("sd15").load(torch.float16).vae.config.force_upcast


def denoiser_in_fp32(pipeline: Any) -> None:
    """Weights in half precision, cast up for the arithmetic of every layer."""
    for layer in pipeline.transformer.modules():
        if isinstance(layer, torch.nn.Linear):
            layer.__dict__["forward"] = lambda values, layer=layer: upcast(layer, values)


@pytest.mark.filterwarnings("ignore:`upcast_vae` is deprecated:FutureWarning")
@pytest.mark.parametrize(
    ("spoil", "says"), [(nothing, None), (denoiser_in_fp32, "matrix operations ran in float16")]
)
def test_a_pipeline_that_leaves_its_vae_in_fp32_is_judged_by_its_denoiser(
    spoil: Spoil, says: str | None, tmp_path: Path
) -> None:
    """AuraFlow, whose small VAE does more than a fifth of the matrix operations."""
    folder = write_pipeline("AuraFlowPipeline", tmp_path / "pipeline")
    workload = workload_of_folder(str(folder)).by_configuration
    call = replace(workload.call, width=64, height=64, steps=2)
    said = complaint("fp16", replace(workload, call=call), SimulatedDevice(), spoil)
    assert said is None if says is None else says in str(said)
