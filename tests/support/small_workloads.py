"""The full-size workloads at a fraction of their width, built and run in a moment."""

from __future__ import annotations

from dataclasses import replace

from fixtures.workloads import WORKLOADS, Workload, cogvideox, flux, sd3, sd15, sdxl
from fixtures.workloads.loading import Source
from tests.support.small_later import SMALL_LATER
from tests.support.smaller import T5, TEXT, VAE

_CLIP = {
    "hidden_size": TEXT,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "projection_dim": TEXT,
}


SMALL: dict[str, Source] = {
    "sd15": sd15.DDIM.changed(
        unet={
            "block_out_channels": (32, 64, 64, 64),
            "attention_head_dim": 2,
            "layers_per_block": 1,
            "cross_attention_dim": TEXT,
        },
        vae=VAE,
        text_encoder=_CLIP,
    ),
    "sdxl": sdxl.SOURCE.changed(
        unet={
            "block_out_channels": (32, 64, 64),
            "attention_head_dim": (2, 4, 4),
            "layers_per_block": 1,
            "transformer_layers_per_block": (1, 1, 1),
            "cross_attention_dim": 2 * TEXT,
            "projection_class_embeddings_input_dim": 6 * 256 + TEXT,
        },
        vae=VAE,
        text_encoder=_CLIP,
        text_encoder_2=_CLIP,
    ),
    "sd3": sd3.SOURCE.changed(
        transformer={
            "num_layers": 2,
            "attention_head_dim": 8,
            "num_attention_heads": 4,
            "joint_attention_dim": 2 * TEXT,
            "caption_projection_dim": 32,
            "pooled_projection_dim": 2 * TEXT,
        },
        vae=VAE,
        text_encoder=_CLIP,
        text_encoder_2=_CLIP,
        text_encoder_3={**T5, "d_model": 2 * TEXT},
    ),
    "flux": flux.SOURCE.changed(
        transformer={
            "num_layers": 1,
            "num_single_layers": 2,
            "attention_head_dim": 16,
            "num_attention_heads": 2,
            "joint_attention_dim": TEXT,
            "pooled_projection_dim": TEXT,
            "axes_dims_rope": (4, 6, 6),
        },
        vae=VAE,
        text_encoder=_CLIP,
        text_encoder_2=T5,
    ),
    "cogvideox-5b": cogvideox.SOURCE.changed(
        transformer={
            "num_layers": 2,
            "num_attention_heads": 2,
            "attention_head_dim": 16,
            "time_embed_dim": 16,
            "text_embed_dim": TEXT,
        },
        vae={
            "block_out_channels": (8, 8, 8, 8),
            "layers_per_block": 1,
            "norm_num_groups": 4,
            # Tiles are half as large, and their overlap is a whole number of pixels.
            "sample_height": 96,
            "sample_width": 80,
        },
        text_encoder=T5,
    ),
}
FRAMES = 9


def small_workload(name: str) -> Workload:
    """The workload with three steps on a small pipeline; images are larger than a video's."""
    workload = WORKLOADS[name]
    if workload.kind == "video":
        # Where no size of tiles is configured, one that the coarsest VAE divides.
        width, height = (96, 64) if name in SMALL_LATER else (80, 96)
        call = replace(workload.call, steps=3, width=width, height=height, frames=FRAMES)
    else:
        call = replace(workload.call, steps=3, width=64, height=64)
    return replace(workload, call=call, source={**SMALL, **SMALL_LATER}[name])
