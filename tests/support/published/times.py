"""Whether published times can calibrate a forecast: the runs, and which of them are held out.

`times.json` has what others published of calls that the suite can simulate, eager, on cards that
have a profile. The rules were fixed before anything of ours was computed. Sources are sorted by the
SHA-256 of their address, and every other one is held out, the second first, with all its runs. A
forecast is good enough if both the median and the worst of its held-out errors are within 15 %.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

FILE: Final = Path(__file__).with_suffix(".json")
GOOD_ENOUGH: Final = 0.15


@dataclass(frozen=True)
class Run:
    """A call of a workload with techniques on a card, and what its source says that it took.

    `call` are changes of the workload's call. `published` is of a whole call with so many `calls`
    of the denoiser, in s, or without them of one of those, in it/s or s/it.
    """

    source: str
    workload: str
    techniques: tuple[str, ...]
    card: str
    published: float
    unit: Literal["s", "it/s", "s/it"]
    calls: int | None = None
    call: Mapping[str, int] = field(default_factory=dict, hash=False)

    @property
    def published_s(self) -> float:
        """Of the whole call, or of one call of the denoiser."""
        return 1 / self.published if self.unit == "it/s" else self.published


def runs() -> list[Run]:
    """All of them, in the order of the file."""
    return [
        Run(**{**run, "source": source["source"], "techniques": tuple(run["techniques"])})
        for source in json.loads(FILE.read_text())
        for run in source["runs"]
    ]


def held_out(sources: set[str]) -> set[str]:
    """Every other source, in an order that says nothing of them."""
    ordered = sorted(sources, key=lambda one: hashlib.sha256(one.encode()).hexdigest())
    return set(ordered[1::2])
