"""The full-size workloads at a fraction of their width, built and run in a moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from fixtures.workloads import WORKLOADS, Workload, cogvideox, flux, sd3, sdxl
from fixtures.workloads.byte_tokenizer import T5_SIZE
from fixtures.workloads.text_encoders import CLIP_BIG_G, CLIP_L, T5_XXL

TEXT = 32
"""Width of every text encoder."""
_CLIP = {
    "hidden_size": TEXT,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "projection_dim": TEXT,
}
_CLIP_L = {**CLIP_L, **_CLIP}
_CLIP_BIG_G = {**CLIP_BIG_G, **_CLIP}
_T5 = {
    **T5_XXL,
    "vocab_size": T5_SIZE,
    "d_model": TEXT,
    "d_kv": 8,
    "d_ff": 64,
    "num_layers": 2,
    "num_heads": 4,
}
_VAE = {"block_out_channels": (32, 32, 32, 32), "layers_per_block": 1}

SMALL: dict[str, Callable[[torch.dtype], Any]] = {
    "sdxl": partial(
        sdxl.random_pipeline,
        unet={
            **sdxl.UNET,
            "block_out_channels": (32, 64, 64),
            "attention_head_dim": (2, 4, 4),
            "layers_per_block": 1,
            "transformer_layers_per_block": (1, 1, 1),
            "cross_attention_dim": 2 * TEXT,
            "projection_class_embeddings_input_dim": 6 * 256 + TEXT,
        },
        vae={**sdxl.VAE, **_VAE},
        text_encoder=_CLIP_L,
        text_encoder_2=_CLIP_BIG_G,
    ),
    "sd3": partial(
        sd3.random_pipeline,
        transformer={
            **sd3.TRANSFORMER,
            "num_layers": 2,
            "attention_head_dim": 8,
            "num_attention_heads": 4,
            "joint_attention_dim": 2 * TEXT,
            "caption_projection_dim": 32,
            "pooled_projection_dim": 2 * TEXT,
        },
        vae={**sd3.VAE, **_VAE},
        text_encoder=_CLIP_L,
        text_encoder_2=_CLIP_BIG_G,
        text_encoder_3={**_T5, "d_model": 2 * TEXT},
    ),
    "flux": partial(
        flux.random_pipeline,
        transformer={
            **flux.TRANSFORMER,
            "num_layers": 1,
            "num_single_layers": 2,
            "attention_head_dim": 16,
            "num_attention_heads": 2,
            "joint_attention_dim": TEXT,
            "pooled_projection_dim": TEXT,
            "axes_dims_rope": (4, 6, 6),
        },
        vae={**flux.VAE, **_VAE},
        text_encoder=_CLIP_L,
        text_encoder_2=_T5,
    ),
    "cogvideox-5b": partial(
        cogvideox.random_pipeline,
        transformer={
            **cogvideox.TRANSFORMER,
            "num_layers": 2,
            "num_attention_heads": 2,
            "attention_head_dim": 16,
            "time_embed_dim": 16,
            "text_embed_dim": TEXT,
        },
        vae={
            **cogvideox.VAE,
            "block_out_channels": (8, 8, 8, 8),
            "layers_per_block": 1,
            "norm_num_groups": 4,
            # Half of it is the size of a tile, of which the overlap is a whole number of pixels.
            "sample_height": 96,
            "sample_width": 80,
        },
        text_encoder=_T5,
    ),
}
FRAMES = 9


def small_workload(name: str) -> Workload:
    """The workload with three steps on a small pipeline; pictures are larger than a video's."""
    workload = WORKLOADS[name]
    size = {"width": 80, "height": 96, "frames": FRAMES}
    if workload.kind != "video":
        size = {"width": 64, "height": 64}
    return replace(
        workload,
        call=replace(workload.call, steps=3, **size),
        source=lambda weights, dtype: SMALL[name](dtype),
        _hosted={},
    )
