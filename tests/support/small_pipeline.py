"""A Stable Diffusion pipeline that is built and run in a moment."""

from __future__ import annotations

from typing import Any

from fixtures.workloads.sd15 import TEXT_ENCODER, UNET, VAE

SMALL: dict[str, dict[str, Any]] = {
    "unet": {
        **UNET,
        "block_out_channels": (32, 64, 64, 64),
        "attention_head_dim": 2,
        "layers_per_block": 1,
        "cross_attention_dim": 32,
    },
    "vae": {**VAE, "block_out_channels": (32, 32, 32, 32), "layers_per_block": 1},
    "text_encoder": {
        **TEXT_ENCODER,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    },
}
"""The published configuration at a fraction of its width."""
