"""Records for tests: entries, looks and timings that nobody measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fixtures.baselines import Entry
from fixtures.machine import Evidence
from fixtures.rounds import Timing
from fixtures.statistics import Group, Look

MIB = 2**20
SOFTWARE = {"python": "3.12.0", "torch": "2.12.0", "diffusers": "0.41.0"}
HARDWARE = {"processor": "Testron 9000", "threads": 1}


def entry(**changes: Any) -> Entry:
    """A sound entry, with some fields replaced."""
    fields: dict[str, Any] = {
        "recorded": {
            "date": "2026-01-31",
            "commit": "0123456789ab",
            "software": SOFTWARE,
            "hardware": HARDWARE,
            "reason": "test",
        },
        "latency_ms": (98.0, 99.0, 100.0, 101.0, 102.0),
        "ratios": (0.98, 0.99, 1.0, 1.01, 1.02),
        "peak_memory_bytes": {"whole": 512 * MIB, "denoiser": 500 * MIB},
        "counters": {"aten::mm": 1000, "aten::add": 400},
        "ssim": 0.995,
    }
    return Entry(**{**fields, **changes})


def look(ratio: float, standard_error: float = 0.001) -> Look:
    """What one process would say of this ratio."""
    return Look(math.log(ratio), standard_error)


def timing(ratio: float = 1.0, *, busy_ms: float = 100.0, pairs: int = 3) -> Timing:
    """A process whose every candidate round takes `ratio` times its reference rounds."""
    reference_s: Sequence[float] = [0.1] * (pairs + 1)
    group = Group(tuple(reference_s), (0.1 * ratio,) * pairs)
    return Timing(
        (group,), (busy_ms / 1000,), busy_ms, Evidence(load=0.5, steal=0.0, cpu_share=1.0)
    )
