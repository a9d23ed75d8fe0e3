"""Runs of a VAE alone: that of Qwen-Image, and CogVideoX's encoder."""

from __future__ import annotations

from typing import Any, Literal

import torch

from fixtures.workloads import cogvideox
from fixtures.workloads.random_weights import random_model
from tests.support.published.figures import Run

LATENT_CHANNELS = 16
PX_PER_LATENT = 8


Way = Literal["decode", "encode"]


def qwen_vae(device: torch.device) -> Any:
    """The VAE of Qwen-Image in fp16, with diffusers' defaults, on the device."""
    from diffusers import AutoencoderKLQwenImage

    return random_model(AutoencoderKLQwenImage, torch.float16).to(device)


def call_qwen_vae(vae: Any, way: Way, height_px: int, width_px: int, device: torch.device) -> None:
    """One image by it, this way."""
    channels, scale = (LATENT_CHANNELS, PX_PER_LATENT) if way == "decode" else (3, 1)
    shape = (1, channels, 1, height_px // scale, width_px // scale)
    getattr(vae, way)(torch.randn(shape, dtype=torch.float16, device=device), return_dict=False)


def qwen(way: Way, height_px: int, width_px: int) -> Run:
    """Loads it, and calls it once."""

    def run(device: torch.device) -> None:
        call_qwen_vae(qwen_vae(device), way, height_px, width_px, device)

    return run


def cogvideox_encode(*, tiled: bool = False) -> Run:
    """A video of CogVideoX's own size, which the source does not state, in bf16."""

    def run(device: torch.device) -> None:
        from diffusers import AutoencoderKLCogVideoX

        vae = random_model(
            lambda: AutoencoderKLCogVideoX(**cogvideox.PUBLISHED["vae"]), torch.bfloat16
        )
        vae.to(device)
        if tiled:
            vae.enable_tiling()
        vae.encode(torch.randn(1, 3, 49, 480, 720, dtype=torch.bfloat16, device=device))

    return run
