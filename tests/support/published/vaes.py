"""Runs of a VAE alone: that of Qwen-Image, and CogVideoX's encoder."""

from __future__ import annotations

import torch

from fixtures.workloads import cogvideox
from fixtures.workloads.random_weights import random_model
from tests.support.published.figures import Run

LATENT_CHANNELS = 16
PX_PER_LATENT = 8


def qwen_decode(height_px: int, width_px: int) -> Run:
    """One image by the VAE of Qwen-Image in fp16, with diffusers' defaults."""

    def run(device: torch.device) -> None:
        from diffusers import AutoencoderKLQwenImage

        vae = random_model(AutoencoderKLQwenImage, torch.float16).to(device)
        shape = (1, LATENT_CHANNELS, 1, height_px // PX_PER_LATENT, width_px // PX_PER_LATENT)
        vae.decode(torch.randn(shape, dtype=torch.float16, device=device), return_dict=False)

    return run


def qwen_encode(height_px: int, width_px: int) -> Run:
    """The way back."""

    def run(device: torch.device) -> None:
        from diffusers import AutoencoderKLQwenImage

        vae = random_model(AutoencoderKLQwenImage, torch.float16).to(device)
        shape = (1, 3, 1, height_px, width_px)
        vae.encode(torch.randn(shape, dtype=torch.float16, device=device), return_dict=False)

    return run


def cogvideox_encode(*, tiled: bool = False) -> Run:
    """A video of CogVideoX's own size, which the source does not state, in bf16."""

    def run(device: torch.device) -> None:
        from diffusers import AutoencoderKLCogVideoX

        vae = random_model(lambda: AutoencoderKLCogVideoX(**cogvideox.VAE), torch.bfloat16)
        vae.to(device)
        if tiled:
            vae.enable_tiling()
        vae.encode(torch.randn(1, 3, 49, 480, 720, dtype=torch.bfloat16, device=device))

    return run
