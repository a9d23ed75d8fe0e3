"""Small copies of the full-size workloads that run where they are named."""

from __future__ import annotations

from fixtures.workloads import (
    chroma,
    flux2,
    hunyuan_video,
    ltx2,
    pixart,
    qwen_image,
    wan,
    z_image,
)
from fixtures.workloads.loading import Source
from tests.support.smaller import T5, TEXT, VAE

_DECODER = {
    "vocab_size": 64,  # by the published one the last layer of a language model takes seconds
    "hidden_size": TEXT,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
}
_QWEN = {
    **hunyuan_video.PUBLISHED["text_encoder"],
    **_DECODER,
    "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]},
}
_QWEN_VL = {
    **qwen_image.PUBLISHED["text_encoder"],
    "text_config": _QWEN,
    "vision_config": {
        "depth": 1,
        "hidden_size": 32,
        "intermediate_size": 32,
        "num_heads": 2,
        "out_hidden_size": TEXT,
        "fullatt_block_indexes": [0],
    },
}


SMALL_LATER: dict[str, Source] = {
    "qwen-image": qwen_image.SOURCE.changed(
        transformer={
            "num_layers": 2,
            "num_attention_heads": 2,
            "attention_head_dim": 16,
            "joint_attention_dim": TEXT,
            "axes_dims_rope": (4, 6, 6),
        },
        vae={"base_dim": 8, "num_res_blocks": 1},
        text_encoder=_QWEN_VL,
    ),
    "z-image": z_image.SOURCE.changed(
        transformer={
            "dim": 32,
            "n_layers": 2,
            "n_refiner_layers": 1,
            "n_heads": 2,
            "n_kv_heads": 2,
            "cap_feat_dim": TEXT,
            "axes_dims": [4, 6, 6],
        },
        vae=VAE,
        text_encoder={**_DECODER, "head_dim": 16},
    ),
    "flux2": flux2.SOURCE.changed(
        transformer={
            "num_layers": 1,
            "num_single_layers": 2,
            "num_attention_heads": 2,
            "attention_head_dim": 16,
            "joint_attention_dim": 3 * TEXT,
            "axes_dims_rope": (4, 4, 4, 4),
        },
        vae=VAE,
        text_encoder={
            "text_config": {
                **flux2.PUBLISHED["text_encoder"]["text_config"],
                **_DECODER,
                "head_dim": 16,
                # The pipeline reads what the tenth, twentieth and thirtieth layer make.
                "num_hidden_layers": 31,
            },
            "vision_config": {
                **flux2.PUBLISHED["text_encoder"]["vision_config"],
                "hidden_size": 32,
                "intermediate_size": 32,
                "num_hidden_layers": 1,
                "num_attention_heads": 2,
                "head_dim": 16,
            },
        },
    ),
    "chroma": chroma.SOURCE.changed(
        transformer={
            "num_layers": 1,
            "num_single_layers": 2,
            "num_attention_heads": 2,
            "attention_head_dim": 16,
            "joint_attention_dim": TEXT,
            "axes_dims_rope": (4, 6, 6),
            "approximator_num_channels": 16,
            "approximator_hidden_dim": 32,
            "approximator_layers": 1,
        },
        vae=VAE,
        text_encoder=T5,
    ),
    "pixart-sigma": pixart.SOURCE.changed(
        transformer={
            "num_layers": 2,
            "num_attention_heads": 2,
            "attention_head_dim": 16,
            "cross_attention_dim": 32,
            "caption_channels": TEXT,
            "sample_size": 8,
        },
        vae=VAE,
        text_encoder=T5,
    ),
    **{
        name: source.changed(
            **{
                part: {
                    "num_layers": 2,
                    "num_attention_heads": 2,
                    "attention_head_dim": 16,
                    "ffn_dim": 64,
                    "text_dim": TEXT,
                    "freq_dim": 32,
                }
                for part in source.layout.models
                if part.startswith("transformer")
            },
            vae={
                "base_dim": 8,
                "num_res_blocks": 1,
                **({"decoder_base_dim": 8} if name == "wan2.2-5b" else {}),
            },
            text_encoder=T5,
        )
        for name, source in {
            "wan-14b": wan.SOURCE,
            "wan-1.3b": wan.SOURCE_1_3B,
            "wan2.2-a14b": wan.SOURCE_A14B,
            "wan2.2-5b": wan.SOURCE_5B,
        }.items()
    },
    "hunyuanvideo-1.5": hunyuan_video.SOURCE.changed(
        transformer={
            "num_layers": 2,
            "num_refiner_layers": 1,
            "num_attention_heads": 2,
            "attention_head_dim": 16,
            "text_embed_dim": TEXT,
            "text_embed_2_dim": TEXT,
            "image_embed_dim": 16,
            "rope_axes_dim": (4, 6, 6),
        },
        vae={"block_out_channels": (32, 32, 64, 64, 64), "layers_per_block": 1},
        text_encoder=_QWEN,
        text_encoder_2={**T5, "vocab_size": 384},
    ),
    "ltx2": ltx2.SOURCE.changed(
        transformer={
            "num_layers": 2,
            "num_attention_heads": 2,
            "attention_head_dim": 16,
            "cross_attention_dim": 32,
            "audio_num_attention_heads": 2,
            "audio_attention_head_dim": 8,
            "audio_cross_attention_dim": 16,
            "caption_channels": TEXT,
        },
        connectors={
            "caption_channels": TEXT,
            "text_proj_in_factor": 3,
            "video_connector_num_attention_heads": 2,
            "video_connector_attention_head_dim": 16,
            "video_connector_num_layers": 1,
            "audio_connector_num_attention_heads": 2,
            "audio_connector_attention_head_dim": 16,
            "audio_connector_num_layers": 1,
        },
        vae={
            "block_out_channels": (8, 16, 32, 64),
            "decoder_block_out_channels": (8, 16, 32),
            "layers_per_block": (1, 1, 1, 1, 1),
            "decoder_layers_per_block": (1, 1, 1, 1),
        },
        # Its statistics of packed latents are as many as its base channels.
        audio_vae={"ch_mult": (1, 1, 1), "num_res_blocks": 1},
        vocoder={"hidden_channels": 64},
        text_encoder={
            "text_config": {
                **ltx2.PUBLISHED["text_encoder"]["text_config"],
                **_DECODER,
                "head_dim": 16,
            },
            "vision_config": {
                **ltx2.PUBLISHED["text_encoder"]["vision_config"],
                "hidden_size": 32,
                "intermediate_size": 32,
                "num_hidden_layers": 1,
                "num_attention_heads": 2,
            },
        },
    ),
}
