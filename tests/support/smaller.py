"""Small components that small copies of pipelines share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fixtures.workloads.byte_tokenizer import T5_SIZE

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
