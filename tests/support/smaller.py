"""A workload's source with smaller components, and those that small copies share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fixtures.workloads.byte_tokenizer import T5_SIZE
from fixtures.workloads.loading import Source

TEXT = 32
"""Width of every text encoder."""
T5: Mapping[str, Any] = {
    "vocab_size": T5_SIZE,
    "d_model": TEXT,
    "d_kv": 8,
    "d_ff": 64,
    "num_layers": 2,
    "num_heads": 4,
}
VAE: Mapping[str, Any] = {"block_out_channels": (32, 32, 32, 32), "layers_per_block": 1}


def smaller(source: Source, **changes: Mapping[str, Any]) -> Source:
    """The source with other values in the configurations of its components."""
    changed = {part: {**source.configs[part], **change} for part, change in changes.items()}
    return replace(source, configs={**source.configs, **changed})
