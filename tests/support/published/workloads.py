"""Workloads of published runs that the suite does not have.

Configurations are those of the repositories named beside them; where nothing is stated, they are
diffusers' defaults, which are the published ones of these models.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import torch

from fixtures.workloads import WORKLOADS, Workload, cogvideox, layouts, pixart, sd3, sd15, sdxl
from fixtures.workloads.base import Kind, quiet
from fixtures.workloads.calls import Call, Drawing
from fixtures.workloads.loading import Source
from fixtures.workloads.random_weights import random_model
from fixtures.workloads.sd3 import T5_XXL
from fixtures.workloads.word_tokenizer import QWEN_CHAT

_PROMPT = "A cat walks on the grass, realistic."
_FLOW = ("FlowMatchEulerDiscreteScheduler", {"use_dynamic_shifting": True})

# transformer/ and vae/ of https://huggingface.co/THUDM/CogVideoX-2b
COGVIDEOX_2B: dict[str, dict[str, Any]] = {
    "transformer": {
        "num_attention_heads": 30,
        "num_layers": 30,
        "use_rotary_positional_embeddings": False,
    },
    "vae": {"scaling_factor": 1.15258426},
}
# transformer/ of https://huggingface.co/THUDM/CogVideoX1.5-5B
_COGVIDEOX_15: dict[str, dict[str, Any]] = {
    "transformer": {
        "patch_size_t": 2,
        "patch_bias": False,
        "sample_frames": 81,
        "sample_height": 96,
        "sample_width": 170,
    }
}
# text_encoder/ of https://huggingface.co/hunyuanvideo-community/HunyuanVideo
_LLAMA_8B: dict[str, Any] = {
    "vocab_size": 128320,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
}
_HUNYUAN_TOKENS = 256
# transformer and VAE as scripts/convert_cogview4_to_diffusers.py of diffusers has them, the text
# encoder as https://huggingface.co/THUDM/glm-4-9b-hf
_COGVIEW4: dict[str, dict[str, Any]] = {
    "transformer": {
        "patch_size": 2,
        "in_channels": 16,
        "num_layers": 28,
        "attention_head_dim": 128,
        "num_attention_heads": 32,
        "out_channels": 16,
        "text_embed_dim": 4096,
        "time_embed_dim": 512,
        "condition_dim": 256,
        "pos_embed_max_size": 128,
    },
    "vae": {
        "down_block_types": ["DownEncoderBlock2D"] * 4,
        "up_block_types": ["UpDecoderBlock2D"] * 4,
        "block_out_channels": [128, 512, 1024, 1024],
        "layers_per_block": 3,
        "latent_channels": 16,
        "sample_size": 1024,
        "scaling_factor": 1.0,
        "use_quant_conv": False,
        "use_post_quant_conv": False,
        "mid_block_add_attention": False,
    },
    "text_encoder": {
        "vocab_size": 151552,
        "hidden_size": 4096,
        "intermediate_size": 13696,
        "num_hidden_layers": 40,
        "num_attention_heads": 32,
        "num_key_value_heads": 2,
        "head_dim": 128,
        "attention_bias": True,
        "pad_token_id": 0,
    },
}
# GLM's tokenizer begins every text, even an empty one.
_GLM_CHAT: dict[str, Any] = {
    "special": ("<|endoftext|>", "[gMASK]"),
    "max_length": 131072,
    "starts_with": "[gMASK]",
}
# Of its angles, whose values change no memory.
_OMNIGEN_FACTORS = ("long_factor", "short_factor")
# transformer/ of https://huggingface.co/stabilityai/stable-diffusion-3.5-medium and -large-turbo
_SD35: dict[str, dict[str, Any]] = {
    "sd3.5-medium": {
        "num_layers": 24,
        "num_attention_heads": 24,
        "caption_projection_dim": 1536,
        "dual_attention_layers": list(range(13)),
        "qk_norm": "rms_norm",
        "pos_embed_max_size": 384,
    },
    "sd3.5-large": {
        "num_layers": 38,
        "num_attention_heads": 38,
        "caption_projection_dim": 2432,
        "qk_norm": "rms_norm",
    },
}
# transformer/ of https://huggingface.co/PixArt-alpha/PixArt-XL-2-512x512
_PIXART_512 = {"sample_size": 64, "use_additional_conditions": False}


def _drawn(**more: Any) -> Callable[[Any, Call], Any]:
    """A call of a pipeline with its size, and what else it takes."""

    def draw(pipeline: Any, call: Call) -> Any:
        frames = {"num_frames": call.frames} if call.frames > 1 else {}
        batch = {"num_images_per_prompt": call.batch} if call.batch > 1 else {}
        return pipeline(
            call.prompt,
            width=call.width,
            height=call.height,
            num_inference_steps=call.steps,
            output_type="np",
            **frames,
            **batch,
            **more,
        )

    return draw


def _workload(
    name: str, source: Any, size: tuple[int, int, int], kind: Kind, **more: Any
) -> Workload:
    width, height, frames = size
    call = Call(_PROMPT, width, height, steps=2, guidance_scale=1.0, frames=frames)
    made = {"half": "bfloat16", "document": "", **more}
    return Workload(name=name, kind=kind, call=call, source=source, **made)


def _pairs_of_frames(pipeline: Any, batch: int, frames: int, *size: int) -> tuple[int, ...]:
    """Latents of CogVideoX 1.5, whose pipeline adds a frame where there is an odd number."""
    first, count, *rest = cogvideox.frames_first(pipeline, batch, frames, *size)
    return (first, count + count % 2, *rest)


def _cogvideox(name: str, configs: dict[str, dict[str, Any]], **more: Any) -> Workload:
    first = WORKLOADS["cogvideox-5b"]
    return replace(first, name=name, source=cogvideox.SOURCE.changed(**configs), **more)


def _sd14(weights: str, dtype: torch.dtype, *, values: bool = True) -> Any:
    """Stable Diffusion 1.4 with its safety checker on the device, which is not called."""
    from diffusers.pipelines.stable_diffusion import StableDiffusionSafetyChecker
    from transformers import CLIPConfig, CLIPImageProcessor

    # safety_checker/ of https://huggingface.co/CompVis/stable-diffusion-v1-4
    vision = {
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_attention_heads": 16,
        "num_hidden_layers": 24,
        "patch_size": 14,
    }
    config = CLIPConfig(vision_config=vision, projection_dim=768)
    pipeline = sd15.DDIM(weights, dtype, values=values)
    checker = random_model(lambda: StableDiffusionSafetyChecker(config), dtype)
    pipeline.register_modules(safety_checker=checker, feature_extractor=CLIPImageProcessor())
    pipeline.run_safety_checker = lambda image, *_: (image, None)
    return quiet(pipeline)


def _sd3_without_t5(weights: str, dtype: torch.dtype, *, values: bool = True) -> Any:
    pipeline = sd3.SOURCE(weights, dtype, values=values)
    pipeline.register_modules(text_encoder_3=None, tokenizer_3=None)
    return pipeline


def _hunyuan(weights: str, dtype: torch.dtype, *, values: bool = True) -> Any:
    """HunyuanVideo, its transformer in bf16 and the rest in fp16."""
    del weights, dtype, values
    from diffusers import (
        AutoencoderKLHunyuanVideo,
        FlowMatchEulerDiscreteScheduler,
        HunyuanVideoPipeline,
        HunyuanVideoTransformer3DModel,
    )
    from transformers import CLIPTextConfig, CLIPTextModel, LlamaConfig, LlamaModel

    half = torch.float16
    clip = sd15.PUBLISHED["text_encoder"]
    return quiet(
        HunyuanVideoPipeline(
            text_encoder=random_model(lambda: LlamaModel(LlamaConfig(**_LLAMA_8B)), half),
            tokenizer=None,
            transformer=random_model(HunyuanVideoTransformer3DModel, torch.bfloat16),
            vae=random_model(AutoencoderKLHunyuanVideo, half),
            scheduler=FlowMatchEulerDiscreteScheduler(),
            text_encoder_2=random_model(lambda: CLIPTextModel(CLIPTextConfig(**clip)), half),
            tokenizer_2=None,
        )
    )


def _hunyuan_drawn(pipeline: Any, call: Call) -> Any:
    """A call from embeddings of the prompt: the text encoders wait where they were placed."""
    device, shape = pipeline._execution_device, (1, _HUNYUAN_TOKENS, 4096)
    return pipeline(
        prompt_embeds=torch.empty(shape, dtype=torch.bfloat16, device=device),
        pooled_prompt_embeds=torch.empty(1, 768, dtype=torch.bfloat16, device=device),
        prompt_attention_mask=torch.ones(shape[:2], dtype=torch.int64, device=device),
        width=call.width,
        height=call.height,
        num_frames=call.frames,
        num_inference_steps=call.steps,
        output_type="np",
    )


def _of_t5(pipeline: str, transformer: str, vae: str, tokens: int, /, **configs: Any) -> Source:
    """A transformer over T5, of diffusers' defaults but for `configs`."""
    return Source.of(
        pipeline,
        models={
            "text_encoder": (layouts.T5, T5_XXL),
            "transformer": (layouts.of_diffusers(transformer), configs.get("transformer", {})),
            "vae": (layouts.of_diffusers(vae), configs.get("vae", {})),
        },
        tokenizers={"tokenizer": (layouts.T5_TOKENIZER, {"model_max_length": tokens})},
        scheduler=configs.get("scheduler", _FLOW),
        left_out=(),
    )


_COGVIEW4_SOURCE = Source.of(
    "CogView4Pipeline",
    models={
        "text_encoder": (layouts.text_encoder("GlmModel"), _COGVIEW4["text_encoder"]),
        "transformer": (
            layouts.of_diffusers("CogView4Transformer2DModel"),
            _COGVIEW4["transformer"],
        ),
        "vae": (layouts.VAE, _COGVIEW4["vae"]),
    },
    tokenizers={"tokenizer": (layouts.QWEN_TOKENIZER, _GLM_CHAT)},
    scheduler=_FLOW,
    left_out=(),
)
_OMNIGEN_SOURCE = Source.of(
    "OmniGenPipeline",
    models={
        "transformer": (
            layouts.of_diffusers("OmniGenTransformer2DModel"),
            {"rope_scaling": {"type": "su", **dict.fromkeys(_OMNIGEN_FACTORS, [1.0] * 48)}},
        ),
        "vae": (layouts.VAE, sdxl.PUBLISHED["vae"]),
    },
    tokenizers={"tokenizer": (layouts.QWEN_TOKENIZER, QWEN_CHAT)},
    scheduler=(
        "FlowMatchEulerDiscreteScheduler",
        {"invert_sigmas": True, "num_train_timesteps": 1},
    ),
    left_out=(),
)


@cache
def workloads() -> dict[str, Workload]:
    """Those of the suite and these."""
    fifth = WORKLOADS["cogvideox-5b"]
    more = {"max_sequence_length": cogvideox.TOKENS}
    pixart_512 = _of_t5(
        "PixArtAlphaPipeline",
        "PixArtTransformer2DModel",
        "AutoencoderKL",
        120,
        transformer={**pixart.PUBLISHED["transformer"], **_PIXART_512},
        vae=sd15.PUBLISHED["vae"],
        scheduler=("DPMSolverMultistepScheduler", pixart.PUBLISHED["scheduler"]),
    )
    found = (
        _cogvideox("cogvideox-2b", COGVIDEOX_2B),
        _cogvideox(
            "cogvideox1.5-5b",
            _COGVIDEOX_15,
            call=replace(fifth.call, width=1360, height=768, frames=81),
            caller=Drawing(_pairs_of_frames, films=True, more=more),
        ),
        replace(WORKLOADS["sd3"], name="sd3-without-t5", source=_sd3_without_t5),
        replace(WORKLOADS["sd15"], name="sd14", source=_sd14),
        _workload(
            "pixart-512",
            pixart_512,
            (512, 512, 1),
            "transformer",
            caller=_drawn(clean_caption=False, use_resolution_binning=False),
        ),
        _workload(
            "ltx-video",
            _of_t5("LTXPipeline", "LTXVideoTransformer3DModel", "AutoencoderKLLTXVideo", 128),
            (768, 512, 121),
            "video",
            caller=_drawn(),
        ),
        _workload(
            "mochi",
            _of_t5(
                "MochiPipeline",
                "MochiTransformer3DModel",
                "AutoencoderKLMochi",
                256,
                scheduler=("FlowMatchEulerDiscreteScheduler", {"invert_sigmas": True}),
            ),
            (848, 480, 85),
            "video",
            caller=_drawn(),
        ),
        _workload(
            "cogview4",
            _COGVIEW4_SOURCE,
            (1024, 1024, 1),
            "transformer",
            caller=_drawn(guidance_scale=3.5),
        ),
        _workload(
            "omnigen",
            _OMNIGEN_SOURCE,
            (1024, 1024, 1),
            "transformer",
            caller=_drawn(guidance_scale=3.0),
        ),
        *(
            replace(WORKLOADS["sd3"], name=name, source=sd3.SOURCE.changed(transformer=config))
            for name, config in _SD35.items()
        ),
        _workload("hunyuanvideo", _hunyuan, (768, 512, 121), "video", caller=_hunyuan_drawn),
    )
    return {**WORKLOADS, **{one.name: one for one in found}}
