"""Ways to run a pipeline, with figures that are made up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fixtures.records.fit import Configuration, Fit
from fixtures.records.units import GIB

DEFAULTS: dict[str, Any] = {
    "program": "pipeline()",
    "needed_bytes": 10 * GIB,
    "peak_bytes": 9 * GIB,
    "reserved_bytes": 11 * GIB,
    "pageable_bytes": GIB,
    "pinned_bytes": 0,
    "copied_bytes": 0,
    "bound_ms": 1000.0,
    "peak_in": "denoiser",
}


def way(techniques: Sequence[str] = ("bf16",), **figures: Any) -> Configuration:
    """A way with these figures and otherwise the same ones as any other."""
    return Configuration(techniques=tuple(techniques), **{**DEFAULTS, **figures})


def fit(*ways: Configuration, memory_bytes: int = 24 * GIB, **facts: Any) -> Fit:
    """What is known of these ways on a card."""
    return Fit(
        workload="flux",
        call={"width": 1024, "height": 1024, "steps": 50, "batch": 1},
        card="NVIDIA GeForce RTX 4090",
        memory_bytes=memory_bytes,
        software={"torch": "2.13.0", "diffusers": "0.42.1"},
        ways=list(ways),
        **facts,
    )
