"""Distilling the VAE: what has no loss, what has, and the whole script on a few images."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from diffusers import AutoencoderTiny
from torch import Tensor

from fixtures.workloads.storybook import IMAGE_PX
from fixtures.workloads.storybook.training import train_tiny_vae
from fixtures.workloads.storybook.training.loop import Draw, Worker
from fixtures.workloads.storybook.training.model import new_vae
from fixtures.workloads.storybook.training.train_tiny_vae import TinyVaeLoss, new_tiny_vae

pytestmark = pytest.mark.long

IMAGES = np.random.default_rng(0).integers(0, 256, (2, IMAGE_PX, IMAGE_PX, 3), np.uint8)
LATENTS = torch.randn(2, 4, 16, 16, generator=torch.Generator().manual_seed(0))
SCALE = 0.5


class Copy:
    """Draws what the VAE draws, but for `off`, and knows the latents of the only image."""

    def __init__(self, vae: Any, off: float = 0.0, latents_off: float = 0.0) -> None:
        self._vae, self._off, self._latents_off = vae, off, latents_off

    def decode(self, latents: Tensor) -> Any:
        drawn = self._vae.decode(latents / SCALE).sample.clamp(-1, 1)
        return SimpleNamespace(sample=drawn + self._off)

    def encode(self, pixels: Tensor) -> Any:
        found = LATENTS[:1] * SCALE + self._latents_off
        return SimpleNamespace(latents=found.expand(len(pixels), -1, -1, -1))


def loss_of(tmp_path: Path, **off: float) -> tuple[Tensor, dict[str, float]]:
    torch.manual_seed(0)
    vae = new_vae().eval()
    vae.register_to_config(scaling_factor=SCALE)
    worker = Worker(0, torch.device("cpu"), tmp_path, torch.float32)
    tiny: Any = Copy(vae, **off)
    loss = TinyVaeLoss(tiny, vae, IMAGES[:1], LATENTS[:1], worker, images_per_step=2)
    with torch.no_grad():
        return loss(Draw.of(0, 0, 0))


def test_who_draws_and_finds_what_the_vae_does_has_no_loss(tmp_path: Path) -> None:
    loss, values = loss_of(tmp_path)
    assert loss < 1e-6
    assert set(values) == {"l1", "edges", "mse", "latents"}


def test_other_pixels_and_other_latents_are_a_loss(tmp_path: Path) -> None:
    _, darker = loss_of(tmp_path, off=-0.1)
    assert darker["l1"] == pytest.approx(0.1, rel=1e-4)
    assert darker["edges"] == pytest.approx(0.0, abs=1e-6)
    assert darker["latents"] == 0
    loss, elsewhere = loss_of(tmp_path, latents_off=0.2)
    assert elsewhere["latents"] == pytest.approx(0.2, rel=1e-4)
    assert loss == pytest.approx(0.1, rel=1e-3)


def test_muon_trains_the_convolutions_between_the_ends() -> None:
    tiny = new_tiny_vae(0.0)
    ends = {
        name
        for name, weight in tiny.named_parameters()
        if weight.dim() == 4 and {3, 4} & set(weight.shape[:2])
    }
    assert ends == train_tiny_vae.ELEMENTWISE


def test_the_whole_script_makes_a_tiny_vae_for_latents_of_unit_variance(tmp_path: Path) -> None:
    train_tiny_vae.main([
        "--work-folder", str(tmp_path / "work"), "--output", str(tmp_path / "tiny"),
        "--workers", "1", "--images", "4", "--steps", "2",
    ])  # fmt: skip
    tiny = AutoencoderTiny.from_pretrained(tmp_path / "tiny")
    assert tiny.dtype == torch.float32
    assert tiny.config.scaling_factor == 1
    assert -0.03 < tiny.config.shift_factor < -0.01
    config = (tmp_path / "tiny" / "config.json").read_text(encoding="utf-8")
    assert "_name_or_path" not in config
    assert '"block_out_channels"' not in config
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tiny", "work"]
