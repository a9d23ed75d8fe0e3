"""What others published, as data: figures, reports of fits, and what is left out and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch

from fixtures.records.units import GIB
from tests.support.published.placing import Place

Counter = Literal["allocated", "reserved", "shown", "loaded", "loaded, reserved", "held", "rise"]
"""`shown` by nvidia-smi or an unnamed tool; `loaded` is what is allocated (or reserved) after
loading, `held` what is allocated after the call; `rise` is by how much the reserved peak of the
call is above what was reserved before it."""
Bound = Literal["", "at most", "more than"]
Script = Callable[[torch.device], Callable[[], object]]
"""Loads and places something on the device, and gives the call."""
Changes = tuple[tuple[str, int], ...]
GB = 10**9
MIB = 1024**2


@dataclass(frozen=True)
class Source:
    """Where it was published, and with which software, or when."""

    name: str
    url: str
    software: str


@dataclass(frozen=True)
class Call:
    """A call of a workload, whose size `changes` change.

    `how` are techniques by their names, or a function that places the pipeline, which is loaded in
    `dtype`, else in the half precision of its authors.
    """

    workload: str
    how: tuple[str, ...] | Place = ("bf16",)
    changes: Changes = ()
    dtype: Literal["", "float32", "float16", "bfloat16"] = ""


@dataclass(frozen=True)
class Figure:
    """One published figure.

    `published` is as it is written, or a range such as `22.61 to 22.64`, in units of `unit` bytes.
    `card` is the profile that is simulated, or a size; `measured_on` what was measured, where that
    is another one or not stated. `outside` are cards of an architecture that no profile has.
    `reason` is that of a miss.
    """

    source: Source
    run: Call | Script
    published: str
    card: str
    counter: Counter = "allocated"
    bound: Bound = ""
    unit: int = GIB
    name: str = ""
    measured_on: str = ""
    seen: bool = False
    outside: bool = False
    reason: str = ""


@dataclass(frozen=True)
class Report:
    """What somebody reports of a call on a card: that it fits, or that memory ran out."""

    source: Source
    run: Call
    card: str
    fits: bool
    measured_on: str = ""
    seen: bool = False
    outside: bool = False
    reason: str = ""


@dataclass(frozen=True)
class Excluded:
    """What was found and is not compared, by a rule of the protocol."""

    what: str
    url: str
    why: str
