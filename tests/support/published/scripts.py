"""Published runs that are no call of a workload: denoisers and VAEs alone, and parts of calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch

from fixtures.techniques.placement import LEAF
from fixtures.workloads import cogvideox, flux, sd15, sdxl
from fixtures.workloads.base import quiet
from fixtures.workloads.random_weights import random_model
from fixtures.workloads.sd3 import T5_TOKENS
from tests.support.published.records import Script

Way = Literal["decode", "encode"]
_STEPS = 2
"""Denoising steps: every further one has the same peak."""
_FORWARDS = 2
LATENT_CHANNELS, PX_PER_LATENT = 16, 8
_SQUARE_VIDEO = (1, 3, 49, 480, 720)
# transformer/ of https://huggingface.co/Lightricks/LTX-Video-0.9.7-dev, of 13.04 billion weights
_LTX_13B = {"num_layers": 48, "attention_head_dim": 128, "cross_attention_dim": 4096}
# image_encoder/ of https://huggingface.co/stabilityai/stable-video-diffusion-img2vid
_VIT_H = {
    "hidden_size": 1280,
    "intermediate_size": 5120,
    "num_attention_heads": 16,
    "num_hidden_layers": 32,
    "patch_size": 14,
    "projection_dim": 1024,
    "hidden_act": "gelu",
}


def _flux_inputs(empty: Callable[..., torch.Tensor]) -> dict[str, Any]:
    return {
        "hidden_states": empty(1, 4096, 64),
        "encoder_hidden_states": empty(1, 512, 4096),
        "pooled_projections": empty(1, 768),
        "img_ids": empty(4096, 3),
        "txt_ids": empty(512, 3),
        "timestep": empty(1).fill_(1.0),
        "guidance": empty(1).fill_(1.0),
    }


def _sdxl_inputs(empty: Callable[..., torch.Tensor]) -> dict[str, Any]:
    return {
        "sample": empty(1, 4, 128, 128),
        "encoder_hidden_states": empty(1, 77, 2048),
        "timestep": empty(1).fill_(1.0),
        "added_cond_kwargs": {"text_embeds": empty(1, 1280), "time_ids": empty(1, 6)},
    }


def _ltx_inputs(empty: Callable[..., torch.Tensor]) -> dict[str, Any]:
    """Of 161 frames of 512x704 px."""
    return {
        "hidden_states": empty(1, 7392, 128),
        "encoder_hidden_states": empty(1, 256, 4096),
        "encoder_attention_mask": empty(1, 256).fill_(1.0),
        "timestep": empty(1).fill_(1.0),
        "video_coords": empty(1, 3, 7392),
    }


def _made(name: str) -> Any:
    from diffusers import (
        FluxTransformer2DModel,
        LTXVideoTransformer3DModel,
        UNet2DConditionModel,
    )

    if name == "flux":
        return FluxTransformer2DModel(**flux.PUBLISHED["transformer"])
    if name == "sdxl":
        return UNet2DConditionModel(**sdxl.PUBLISHED["unet"])
    return LTXVideoTransformer3DModel(**_LTX_13B)


_INPUTS = {"flux": _flux_inputs, "sdxl": _sdxl_inputs, "ltx": _ltx_inputs}


def denoiser(name: str, placed: str) -> Script:
    """One alone in bf16, as diffusers' nightly benchmark runs it: `bf16`, `fp8` or by `leaves`."""

    def script(device: torch.device) -> Callable[[], object]:
        model = random_model(lambda: _made(name), torch.bfloat16)
        if placed == "leaves":
            model.enable_group_offload(
                onload_device=device,
                offload_device=torch.device("cpu"),
                offload_type=LEAF,
                use_stream=True,
                non_blocking=True,
            )
        else:
            model.to(device)
        if placed == "fp8":
            model.enable_layerwise_casting(
                storage_dtype=torch.float8_e4m3fn, compute_dtype=torch.bfloat16
            )
        inputs = _INPUTS[name](
            lambda *shape: torch.empty(shape, dtype=torch.bfloat16, device=device)
        )
        return lambda: [model(**inputs) for _ in range(_FORWARDS)]

    return script


def qwen_vae(way: Way, height_px: int, width_px: int) -> Script:
    """One image by the VAE of Qwen-Image in fp16, of diffusers' defaults."""

    def script(device: torch.device) -> Callable[[], object]:
        from diffusers import AutoencoderKLQwenImage

        vae = random_model(AutoencoderKLQwenImage, torch.float16).to(device)
        channels, scale = (LATENT_CHANNELS, PX_PER_LATENT) if way == "decode" else (3, 1)
        shape = (1, channels, 1, height_px // scale, width_px // scale)
        return lambda: getattr(vae, way)(
            torch.randn(shape, dtype=torch.float16, device=device), return_dict=False
        )

    return script


def cogvideox_encode(
    *, tiled: bool = False, vae_class: Any = None, decoded: bool = False
) -> Script:
    """A video of CogVideoX's own size, which the source does not state, in bf16.

    Args:
        tiled: whether in tiles.
        vae_class: another class of VAE, of an older diffusers.
        decoded: whether it is decoded, too, as is inferred from the source's figures.
    """

    def script(device: torch.device) -> Callable[[], object]:
        from diffusers import AutoencoderKLCogVideoX

        made = vae_class or AutoencoderKLCogVideoX
        config = cogvideox.PUBLISHED["vae"]
        vae = random_model(lambda: made.from_config(config), torch.bfloat16).to(device)
        if tiled:
            vae.enable_tiling()
        video = torch.randn(_SQUARE_VIDEO, dtype=torch.bfloat16, device=device)

        def call() -> object:
            latents = vae.encode(video).latent_dist.sample()
            return vae.decode(latents) if decoded else latents

        return call

    return script


def flux_latents(device: torch.device) -> Callable[[], object]:
    """Flux in bf16 up to the latents of 768x768 px, from embeddings, without text encoders."""
    pipeline = flux.SOURCE("", torch.bfloat16)
    encoders = ("text_encoder", "text_encoder_2", "tokenizer", "tokenizer_2")
    pipeline.register_modules(**dict.fromkeys(encoders))
    pipeline.to(device)
    embeddings = torch.empty(1, T5_TOKENS, 4096, dtype=torch.bfloat16, device=device)
    pooled = torch.empty(1, 768, dtype=torch.bfloat16, device=device)
    return lambda: pipeline(
        prompt_embeds=embeddings,
        pooled_prompt_embeds=pooled,
        height=768,
        width=768,
        num_inference_steps=_STEPS,
        output_type="latent",
    )


def svd(frames: int, chunk: int, *, saving: bool = False) -> Script:
    """Stable Video Diffusion in fp16 at 1024x576 px, of diffusers' defaults.

    Args:
        frames: of the video.
        chunk: how many of them the VAE decodes at once.
        saving: with model offload and chunks of the feed-forward layers.
    """

    def script(device: torch.device) -> Callable[[], object]:
        from diffusers import (
            AutoencoderKLTemporalDecoder,
            EulerDiscreteScheduler,
            StableVideoDiffusionPipeline,
            UNetSpatioTemporalConditionModel,
        )
        from PIL import Image
        from transformers import (
            CLIPImageProcessor,
            CLIPVisionConfig,
            CLIPVisionModelWithProjection,
        )

        half, blocks = torch.float16, sd15.PUBLISHED["vae"]
        vae = {key: blocks[key] for key in ("down_block_types", "block_out_channels")}
        pipeline = StableVideoDiffusionPipeline(
            vae=random_model(lambda: AutoencoderKLTemporalDecoder(**vae, layers_per_block=2), half),
            image_encoder=random_model(
                lambda: CLIPVisionModelWithProjection(CLIPVisionConfig(**_VIT_H)), half
            ),
            unet=random_model(UNetSpatioTemporalConditionModel, half),
            scheduler=EulerDiscreteScheduler(
                prediction_type="v_prediction", use_karras_sigmas=True
            ),
            feature_extractor=CLIPImageProcessor(),
        )
        quiet(pipeline)
        if saving:
            pipeline.enable_model_cpu_offload(device=device)
            pipeline.unet.enable_forward_chunking()
        else:
            pipeline.to(device)
        image = Image.new("RGB", (1024, 576))
        return lambda: pipeline(
            image,
            height=576,
            width=1024,
            num_frames=frames,
            decode_chunk_size=chunk,
            num_inference_steps=_STEPS,
            output_type="np",
        )

    return script
