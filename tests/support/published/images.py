"""Runs of pipelines that draw images: Flux, Stable Diffusion 3 and XL, PixArt-Sigma."""

from __future__ import annotations

from typing import Any

import torch

from fixtures.workloads import flux, sd3, sdxl
from fixtures.workloads import pixart as pixart_sigma
from fixtures.workloads.random_weights import random_model
from fixtures.workloads.sd3 import T5_TOKENS
from tests.support.published.figures import STEPS, Run
from tests.support.published.placing import Place, on_device

PROMPT = "A cat holding a sign that says hello world"
SIDE_PX = 1024


def square(pipeline: Any, batch: int, **more: Any) -> None:
    """Draw images of 1024x1024 px in one call."""
    pipeline(
        PROMPT,
        num_images_per_prompt=batch,
        num_inference_steps=STEPS,
        height=SIDE_PX,
        width=SIDE_PX,
        output_type="np",
        **more,
    )


def flux_run(place: Place = on_device, batch: int = 1) -> Run:
    """Flux in bf16."""

    def run(device: torch.device) -> None:
        pipeline = flux.SOURCE("", torch.bfloat16)
        place(pipeline, device)
        square(pipeline, batch, max_sequence_length=T5_TOKENS)

    return run


def flux_latents(device: torch.device) -> None:
    """Flux in bf16 up to the latents of 768x768 px, from embeddings, without text encoders."""
    pipeline = flux.SOURCE("", torch.bfloat16)
    encoders = ("text_encoder", "text_encoder_2", "tokenizer", "tokenizer_2")
    pipeline.register_modules(**dict.fromkeys(encoders))
    pipeline.to(device)
    pipeline(
        prompt_embeds=torch.empty(1, T5_TOKENS, 4096, dtype=torch.bfloat16, device=device),
        pooled_prompt_embeds=torch.empty(1, 768, dtype=torch.bfloat16, device=device),
        height=768,
        width=768,
        num_inference_steps=STEPS,
        output_type="latent",
    )


def sd3_without_t5(place: Place) -> Run:
    """Stable Diffusion 3 in fp16 without its largest text encoder."""

    def run(device: torch.device) -> None:
        pipeline = sd3.SOURCE("", torch.float16)
        pipeline.register_modules(text_encoder_3=None, tokenizer_3=None)
        place(pipeline, device)
        square(pipeline, 1)

    return run


def sdxl_run(place: Place, batch: int, *, tiny_vae: bool = False) -> Run:
    """Stable Diffusion XL in fp16."""

    def run(device: torch.device) -> None:
        from diffusers import AutoencoderTiny

        pipeline = sdxl.SOURCE("", torch.float16)
        if tiny_vae:
            pipeline.vae = random_model(AutoencoderTiny, torch.float16)
        place(pipeline, device)
        square(pipeline, batch)

    return run


def pixart() -> Any:
    """PixArt-Sigma in fp16, on the host."""
    return pixart_sigma.SOURCE("", torch.float16)


def pixart_run(batch: int) -> Run:
    """PixArt-Sigma in fp16, everything on the device."""

    def run(device: torch.device) -> None:
        pipeline = pixart()
        pipeline.to(device)
        square(pipeline, batch, clean_caption=False)

    return run
