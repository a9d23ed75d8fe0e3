"""Half precision whose VAE its pipeline casts to fp32 is in effect; a forgotten cast is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from fixtures.catalogue.workloads.by_configuration.workload import workload_of_folder
from fixtures.devices.cpu import CpuDevice
from fixtures.devices.simulated.device import SimulatedDevice
from tests.catalogue.techniques.test_half_done import upcast
from tests.support.configurations import write_pipeline
from tests.support.half_done import Spoil, complaint, complaint_at_rest, nothing
from tests.support.small_workloads import small_workload


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
            pipeline.vae.get_submodule(part).to(pipeline.unet.dtype)

    return change


def needs_no_upcast(pipeline: Any) -> None:
    pipeline.vae.register_to_config(force_upcast=False)


VAE = in_fp32("vae")
LOWERED_AGAIN = ("post_quant_conv", "decoder.conv_in", "decoder.mid_block")
IN_FP32 = "vae.encoder.conv_in.weight is torch.float32"
CASTS: dict[str, tuple[Spoil, str | None]] = {
    "all of the VAE": (VAE, None),
    "as before diffusers 0.36": (after(VAE, lower(*LOWERED_AGAIN)), None),
    "cast back": (after(VAE, lower("")), None),
    "in another precision": (after(VAE, lambda it: it.vae.bfloat16()), "is torch.bfloat16, not"),
    "a VAE that needs no upcast": (after(VAE, needs_no_upcast), IN_FP32),
    "a text encoder": (in_fp32("vae", "text_encoder_2"), "text_encoder_2."),
    "the denoiser": (in_fp32("unet"), "unet."),
}
"""Of SDXL, which casts its VAE up: what is in fp32, and what is said of it."""


@pytest.mark.parametrize("how", CASTS)
def test_the_pipeline_s_own_upcast_is_in_effect_and_a_forgotten_cast_is_not(how: str) -> None:
    spoil, says = CASTS[how]
    said = complaint_at_rest("fp16", small_workload("sdxl"), CpuDevice(), spoil)
    assert said is None if says is None else says in str(said)


def test_what_a_vae_says_of_upcasts_counts_only_in_a_pipeline_that_asks_for_it() -> None:
    workload = small_workload("sd15")
    assert workload.load(torch.float16).vae.config.force_upcast  # by default
    assert IN_FP32 in str(complaint_at_rest("fp16", workload, CpuDevice(), VAE))


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
