"""Runs of pipelines that draw videos: CogVideoX, HunyuanVideo and LTX-Video."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from fixtures.workloads import cogvideox, sd15
from fixtures.workloads.base import quiet
from fixtures.workloads.byte_tokenizer import byte_t5_tokenizer
from fixtures.workloads.random_weights import random_model
from fixtures.workloads.sd3 import T5_XXL
from tests.support.published.figures import STEPS, Run
from tests.support.published.placing import Place, on_device

PROMPT = "A cat walks on the grass, realistic."
POST: dict[str, Any] = {"height": 512, "width": 768, "num_frames": 121}
"""The videos of the Hugging Face blog post 'State of open video generation models'."""
COGVIDEO: dict[str, Any] = {"height": 480, "width": 720, "num_frames": 49}

# transformer/ and vae/ of https://huggingface.co/THUDM/CogVideoX-2b
_COGVIDEOX_2B: dict[str, dict[str, Any]] = {
    "transformer": {
        **cogvideox.PUBLISHED["transformer"],
        "num_attention_heads": 30,
        "num_layers": 30,
        "use_rotary_positional_embeddings": False,
    },
    "vae": {**cogvideox.PUBLISHED["vae"], "scaling_factor": 1.15258426},
}
# transformer/ of https://huggingface.co/THUDM/CogVideoX1.5-5B
COGVIDEOX_15: dict[str, dict[str, Any]] = {
    "transformer": {
        **cogvideox.PUBLISHED["transformer"],
        "patch_size_t": 2,
        "patch_bias": False,
        "sample_frames": 81,
        "sample_height": 96,
        "sample_width": 170,
    }
}
# text_encoder/ of https://huggingface.co/hunyuanvideo-community/HunyuanVideo
LLAMA_8B: dict[str, Any] = {
    "vocab_size": 128320,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
}
HUNYUAN_TOKENS = 256
LTX_TOKENS = 128


def _cogvideox(place: Place, configs: dict[str, dict[str, Any]], **size: int) -> Run:
    source = replace(cogvideox.SOURCE, configs={**cogvideox.SOURCE.configs, **configs})

    def run(device: torch.device) -> None:
        pipeline = source("", torch.bfloat16)
        place(pipeline, device)
        pipeline(PROMPT, num_inference_steps=STEPS, output_type="np", **size)

    return run


def cogvideox_5b(place: Place = on_device) -> Run:
    """CogVideoX-5b in bf16."""
    return _cogvideox(place, {}, **COGVIDEO)


def cogvideox_2b(place: Place = on_device) -> Run:
    """CogVideoX-2b, loaded in bf16 and then cast to fp16 as a whole."""

    def cast(pipeline: Any, device: torch.device) -> None:
        pipeline.to(torch.float16)
        place(pipeline, device)

    return _cogvideox(cast, _COGVIDEOX_2B, **COGVIDEO)


def cogvideox_15(device: torch.device) -> None:
    """CogVideoX1.5-5B in bf16, everything on the device."""
    _cogvideox(on_device, COGVIDEOX_15, **POST)(device)


def ltx(device: torch.device) -> None:
    """LTX-Video in bf16, everything on the device; its configurations are diffusers' defaults."""
    from diffusers import (
        AutoencoderKLLTXVideo,
        FlowMatchEulerDiscreteScheduler,
        LTXPipeline,
        LTXVideoTransformer3DModel,
    )
    from transformers import T5Config, T5EncoderModel

    half = torch.bfloat16
    pipeline = LTXPipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True),
        vae=random_model(AutoencoderKLLTXVideo, half),
        text_encoder=random_model(lambda: T5EncoderModel(T5Config.from_dict(T5_XXL)), half),
        tokenizer=byte_t5_tokenizer(LTX_TOKENS),
        transformer=random_model(LTXVideoTransformer3DModel, half),
    )
    quiet(pipeline).to(device)
    pipeline(PROMPT, num_inference_steps=STEPS, output_type="np", **POST)


def hunyuan(place: Place) -> Run:
    """HunyuanVideo, its transformer in bf16 and the rest in fp16, from embeddings of the prompt.

    The text encoders wait where `place` puts them; diffusers' defaults are the configurations.
    """

    def run(device: torch.device) -> None:
        from diffusers import (
            AutoencoderKLHunyuanVideo,
            FlowMatchEulerDiscreteScheduler,
            HunyuanVideoPipeline,
            HunyuanVideoTransformer3DModel,
        )
        from transformers import CLIPTextConfig, CLIPTextModel, LlamaConfig, LlamaModel

        half = torch.float16
        pipeline = HunyuanVideoPipeline(
            text_encoder=random_model(lambda: LlamaModel(LlamaConfig(**LLAMA_8B)), half),
            tokenizer=None,
            transformer=random_model(HunyuanVideoTransformer3DModel, torch.bfloat16),
            vae=random_model(AutoencoderKLHunyuanVideo, half),
            scheduler=FlowMatchEulerDiscreteScheduler(),
            text_encoder_2=random_model(
                lambda: CLIPTextModel(CLIPTextConfig(**sd15.PUBLISHED["text_encoder"])), half
            ),
            tokenizer_2=None,
        )
        place(quiet(pipeline), device)
        shape = (1, HUNYUAN_TOKENS, 4096)
        pipeline(
            prompt_embeds=torch.empty(shape, dtype=torch.bfloat16, device=device),
            pooled_prompt_embeds=torch.empty(1, 768, dtype=torch.bfloat16, device=device),
            prompt_attention_mask=torch.ones(shape[:2], dtype=torch.int64, device=device),
            num_inference_steps=STEPS,
            output_type="np",
            **POST,
        )

    return run
