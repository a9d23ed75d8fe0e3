"""Published configurations state what their classes would else decide by themselves."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import pytest

from fixtures.workloads import WORKLOADS
from fixtures.workloads.composition import Composition
from fixtures.workloads.published import FOLDER, changed
from fixtures.workloads.sources import Source

SOURCES = {
    name: workload.source
    for name, workload in WORKLOADS.items()
    if isinstance(workload.source, Source)
}
OF_TRAINING = {"dropout_rate", "initializer_factor", "initializer_range", "use_cache"}
OF_EVERY_ENCODER = {"return_dict", "is_encoder_decoder"}
UNSTATED: Mapping[str, set[str]] = {
    # What Stable Diffusion 1.5 was published before.
    "UNet2DConditionModel": {
        *("mid_block_type", "transformer_layers_per_block", "attention_type"),
        *("resnet_time_scale_shift", "resnet_out_scale_factor", "time_embedding_type"),
        *("conv_in_kernel", "conv_out_kernel", "addition_embed_type_num_heads"),
    },
    # Of Stable Diffusion 1.5, and of 3 the last one.
    "AutoencoderKL": {
        *("scaling_factor", "force_upcast", "use_quant_conv", "use_post_quant_conv"),
        "mid_block_add_attention",
    },
    "FluxTransformer2DModel": {"axes_dims_rope"},
    "CogVideoXTransformer3DModel": {"patch_bias"},  # of CogVideoX 1.5
    "PixArtTransformer2DModel": {"norm_num_groups", "attention_type"},  # which it never reads
    "AutoencoderKLQwenImage": {"input_channels"},  # of layered images
    "Flux2Transformer2DModel": {"guidance_embeds"},  # of Klein
    # Of Wan 2.2.
    "AutoencoderKLWan": {
        *("in_channels", "out_channels", "scale_factor_temporal", "scale_factor_spatial"),
    },
    # Of LTX-2.3 and 2.5.
    "LTX2TextConnectors": {"video_hidden_dim", "audio_hidden_dim"},
    "LTX2VideoTransformer3DModel": {"ff_bias", "audio_ff_bias", "use_prompt_adaln_single"},
    "LTX2Vocoder": {"antialias_ratio", "antialias_kernel_size"},
    "MistralConfig": {"bos_token_id", "eos_token_id"},  # which only generating reads
    # What says that nothing else was ever published.
    "Gemma3Config": {"tie_word_embeddings"},
    "Gemma3TextConfig": {"tie_word_embeddings", "bos_token_id", "eos_token_id"},
}
"""By class, what published configurations are silent about and is not switched off by default."""


def parts_of(source: Source) -> Iterator[tuple[type, Mapping[str, Any]]]:
    """Every class that takes a configuration, those inside of another one among them."""
    components = Composition.of(source.index).components.items()
    for component, cls in ((name, cls) for name, (of, cls) in components if of == "model"):
        config, kind = source.configs[component], getattr(cls, "config_class", None) or cls
        if kind is not cls:
            whole = kind.from_dict(deepcopy(dict(config)))  # which it writes into
            for name in ("text_config", "vision_config"):
                if name in config:
                    yield type(getattr(whole, name)), config[name]
        yield kind, config


@pytest.mark.parametrize("name", SOURCES)
def test_no_component_is_left_to_its_class(name: str) -> None:
    for kind, config in parts_of(SOURCES[name]):
        left = {
            parameter.name
            for parameter in inspect.signature(kind.__init__).parameters.values()  # type: ignore[misc]
            if parameter.name not in (*config, "self") and parameter.default
        }
        named = UNSTATED.get(kind.__name__, set()) | OF_TRAINING | OF_EVERY_ENCODER
        assert left <= named, f"{kind.__name__} of {name}"


def test_every_configuration_names_its_source_and_none_is_unused() -> None:
    used = [dict(config) for source in SOURCES.values() for config in source.configs.values()]
    for path in FOLDER.glob("*.json"):
        assert path.stem in SOURCES
        for component, config in json.loads(path.read_text(encoding="utf-8")).items():
            if isinstance(config, dict):
                is_made = component in ("model_index", "guider") or "tokenizer" in component
                assert config.get("_source") or is_made, f"{component} of {path.name}"
                stated = changed({}, config).items()
                assert any(stated <= other.items() for other in used), path.name
