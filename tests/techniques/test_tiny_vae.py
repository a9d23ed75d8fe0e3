"""A tiny VAE: which one a workload takes, what is said of a half, and what it draws and saves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fixtures.devices.cpu import CpuDevice
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.measuring.observation import observe
from fixtures.scenarios import Scenario
from fixtures.techniques import CATALOGUE, vae
from fixtures.techniques.vae import load_tiny_vae
from fixtures.workloads import WORKLOADS, WorkloadError
from fixtures.workloads.base import RANDOM
from fixtures.workloads.storybook import PIPELINE_FOLDER, TINY_VAE_FOLDER
from tests.support.half_done import HalfDone, before_the_last_step, brief

NAME = "tiny_vae"
STORED = ("storybook", "storybook-dit")


CPU = CpuDevice()


def large_again(pipeline: Any) -> None:
    pipeline.vae = WORKLOADS["storybook"].load(torch.float32).vae


def the_large_ones_decoder(pipeline: Any) -> None:
    pipeline.vae.decoder = WORKLOADS["storybook"].load(torch.float32).vae.decoder


def decoded_by_the_large_one(pipeline: Any) -> None:
    pipeline.vae.decode = WORKLOADS["storybook"].load(torch.float32).vae.decode


HALF_DONE = [
    HalfDone(NAME, "undone", large_again, "the VAE is AutoencoderKL, not AutoencoderTiny"),
    HalfDone(NAME, "late", before_the_last_step(large_again), "the VAE is Autoe", called=True),
    HalfDone(NAME, "its encoder alone", the_large_ones_decoder, "is Decoder, not DecoderTiny"),
    HalfDone(NAME, "another", decoded_by_the_large_one, "decoded in 0 calls", called=True),
]


@pytest.mark.parametrize("case", HALF_DONE, ids=str)
def test_a_half_done_technique_is_inactive(case: HalfDone) -> None:
    case.is_noticed(brief("storybook"), CPU)


@pytest.mark.parametrize("name", STORED)
def test_it_draws_nearly_the_same_with_less_memory_for_decoding(name: str) -> None:
    scenario = Scenario(brief(name, 128), CATALOGUE[NAME])
    plain, tiny = observe(scenario.reference, CPU), observe(scenario, CPU)
    assert tiny.inactive is None
    for component in ("vae", "denoiser"):
        assert tiny.component_peak_bytes[component] < plain.component_peak_bytes[component]
    images = []
    for technique in (scenario.reference.technique, scenario.technique):
        with technique.applied(WORKLOADS[name], CPU) as pipeline:
            images.append(WORKLOADS[name].draw(pipeline))
    assert 0 < np.abs(images[0] - images[1]).mean() < 0.02


@pytest.mark.parametrize("name", STORED)
def test_an_embedded_workload_has_an_embedded_one(name: str) -> None:
    wanted = load_tiny_vae(WORKLOADS[name], "nobody/nothing", 4, torch.float32)
    with CATALOGUE[NAME].applied(WORKLOADS[name], CPU) as pipeline:
        assert not pipeline.vae.training
        for weight, other in zip(pipeline.vae.parameters(), wanted.parameters(), strict=True):
            assert torch.equal(weight, other)
            assert not weight.requires_grad


@pytest.mark.parametrize(
    ("name", "channels", "parameters"),
    [
        ("sd15", 4, 2_445_063),
        ("sdxl", 4, 2_445_063),
        ("sd3", 16, 2_458_899),
        ("flux", 16, 2_458_899),
    ],
)
def test_random_weights_have_a_random_one_of_the_published_size(
    name: str, channels: int, parameters: int
) -> None:
    """As many parameters as the published files have."""
    tiny = load_tiny_vae(WORKLOADS[name], "nobody/nothing", channels, torch.bfloat16)
    assert sum(weight.numel() for weight in tiny.parameters()) == parameters
    assert {weight.dtype for weight in tiny.parameters()} == {torch.bfloat16}


def test_on_random_weights_its_images_are_not_judged() -> None:
    case = Scenario(WORKLOADS["storybook"].with_weights(RANDOM), CATALOGUE[NAME])
    assert case.no_images(CPU) == "tiny_vae relies on trained weights, and these are random"
    assert case.reference.no_images(CPU) is None
    assert Scenario(WORKLOADS["storybook"], CATALOGUE[NAME]).no_images(CPU) is None


def test_a_device_without_images_says_so_first() -> None:
    case = Scenario(WORKLOADS["sd15"], CATALOGUE[NAME])
    device = SimulatedDevice()
    assert case.no_images(device) == case.reference.no_images(device)


def test_other_weights_take_the_published_one(tmp_path: Path) -> None:
    """A folder here stands for the hub's."""
    own = tmp_path / "own"
    own.symlink_to(PIPELINE_FOLDER)
    workload = replace(WORKLOADS["storybook"].with_weights(str(own)), call=brief("storybook").call)
    settings = {"": {"published": str(TINY_VAE_FOLDER)}}
    case = Scenario(workload, replace(CATALOGUE[NAME], settings=settings))
    wanted = observe(Scenario(brief("storybook"), CATALOGUE[NAME]), CPU)
    np.testing.assert_array_equal(observe(case, CPU).images, wanted.images)
    by_shapes = load_tiny_vae(workload.by_configuration, "nobody/nothing", 4, torch.float32)
    assert by_shapes.config.decoder_block_out_channels == (64, 64, 64, 64)


def test_a_published_one_that_does_not_come_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    def down(*_: Any, **__: Any) -> str:
        raise ConnectionError("no network")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", down)
    workload = WORKLOADS["sd15"].with_weights(str(PIPELINE_FOLDER))
    with pytest.raises(
        WorkloadError, match="'madebyollin/taesd' is not a local folder, and the hub"
    ):
        load_tiny_vae(workload, "madebyollin/taesd", 4, torch.float32)
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(WorkloadError, match="cannot be loaded"):
        load_tiny_vae(workload, str(tmp_path), 4, torch.float32)
    monkeypatch.setattr(vae, "TINY_VAE_FOLDER", tmp_path)
    with pytest.raises(WorkloadError, match=f"{tmp_path.name}' cannot be loaded"):
        load_tiny_vae(WORKLOADS["storybook"], "madebyollin/taesd", 4, torch.float32)
