"""What a published figure is, and the peaks of the same run on the simulated card."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal

import torch

from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.records.units import GIB

Counter = Literal["allocated", "reserved"]
Run = Callable[[torch.device], object]
"""Loads, places and calls, on the device that it is given."""
STEPS = 2
"""Denoising steps: every further one has the same peak."""


@dataclass(frozen=True)
class Peaks:
    """Peaks of a process, from an empty device on, in GiB."""

    exact: dict[Counter, float]
    modelled: dict[Counter, float]


@dataclass(frozen=True)
class Figure:
    """One published figure, and how to repeat its run.

    `profile` is the simulated card, `card` the one that was measured. `published` is in GiB, by
    `max_memory_allocated` or `max_memory_reserved`. A `seen` figure is one of those that the rule
    was found with.
    """

    name: str
    card: str
    profile: str
    published: float
    source: str
    run: Run
    counter: Counter = "allocated"
    seen: bool = False

    @property
    def peaks(self) -> Peaks:
        """Of the same run on the simulated card."""
        return peaks_of(self.profile, self.run)

    @property
    def deviation(self) -> float:
        """Of the modelled peak from the published one, relative."""
        return self.peaks.modelled[self.counter] / self.published - 1

    @property
    def row(self) -> str:
        """Of the table in docs/simulated.md."""
        name = self.name if self.counter == "allocated" else f"{self.name}, reserved"
        exact, modelled = self.peaks.exact[self.counter], self.peaks.modelled[self.counter]
        return (
            f"| {name} | {self.card} | {self.published:g} | {exact:.3f} | {modelled:.3f} | "
            f"{self.deviation:+.1%} | {self.source} |"
        )


@cache
def peaks_of(profile: str, run: Run) -> Peaks:
    """The peaks of a run, which is simulated once."""
    return fresh_peaks_of(profile, run)


def fresh_peaks_of(profile: str, run: Run) -> Peaks:
    """The peaks of a run without gradients. As in most scripts, they are never reset."""
    device = SimulatedDevice(profile)
    with device.entered(), torch.no_grad():
        run(device.torch_device)
        simulation = device._simulation
        assert simulation is not None
        exact, modelled = simulation.memory.allocator, simulation.memory.modelled
        return Peaks(
            {
                "allocated": exact.peak_allocated_bytes / GIB,
                "reserved": exact.peak_reserved_bytes / GIB,
            },
            {
                "allocated": modelled.peak_allocated_bytes / GIB,
                "reserved": modelled.peak_reserved_bytes / GIB,
            },
        )
