"""Small copies of the full-size workloads whose models are from 2024 or later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fixtures.workloads import qwen_image, z_image
from fixtures.workloads.loading import Source
from fixtures.workloads.text_encoders import QWEN3_4B, QWEN25_VL_7B

TEXT = 32
"""Width of every text encoder."""
_DECODER = {
    "hidden_size": TEXT,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
}
_KL_VAE = {"block_out_channels": (32, 32, 32, 32), "layers_per_block": 1}
_QWEN25_VL = {
    "text_config": {
        **QWEN25_VL_7B["text_config"],
        **_DECODER,
        "rope_parameters": {
            **QWEN25_VL_7B["text_config"]["rope_parameters"],
            "mrope_section": [2, 3, 3],
        },
    },
    "vision_config": {
        **QWEN25_VL_7B["vision_config"],
        "depth": 1,
        "hidden_size": 32,
        "intermediate_size": 32,
        "num_heads": 2,
        "out_hidden_size": TEXT,
        "fullatt_block_indexes": [0],
    },
}


def _smaller(source: Source, **changes: Mapping[str, Any]) -> Source:
    changed = {part: {**source.configs[part], **change} for part, change in changes.items()}
    return replace(source, configs={**source.configs, **changed})


SMALL_LATER: dict[str, Source] = {
    "qwen-image": _smaller(
        qwen_image.SOURCE,
        transformer={
            "num_layers": 2,
            "num_attention_heads": 2,
            "attention_head_dim": 16,
            "joint_attention_dim": TEXT,
            "axes_dims_rope": (4, 6, 6),
        },
        vae={"base_dim": 8, "num_res_blocks": 1},
        text_encoder=_QWEN25_VL,
    ),
    "z-image-turbo": _smaller(
        z_image.SOURCE,
        transformer={
            "dim": 32,
            "n_layers": 2,
            "n_refiner_layers": 1,
            "n_heads": 2,
            "n_kv_heads": 2,
            "cap_feat_dim": TEXT,
            "axes_dims": [4, 6, 6],
        },
        vae=_KL_VAE,
        text_encoder={**_DECODER, "head_dim": 16, "vocab_size": QWEN3_4B["vocab_size"]},
    ),
}
