"""The clock of the rehearsal: what has been queued since it was last read takes its bound.

It is the roofline bound of the simulation, times a factor that makes a call of the embedded model
as long as one of a full-size pipeline, so that plans are made as they would be; and times a noise
of its own for every reading, seeded by the process's number.
"""

from __future__ import annotations

import random
import time
from types import ModuleType, SimpleNamespace

from fixtures.devices.simulated.roofline import Work
from fixtures.devices.simulated.simulation import Simulation

RATE = 1000.0
NOISE = 0.001


class _Clock:
    def __init__(self) -> None:
        self._simulation: Simulation | None = None
        self._now_s = 0.0
        self.random = random.Random(0)

    def start(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def now_s(self) -> float:
        """Seconds since the start; the work since the last reading is taken off the record."""
        simulation = self._simulation
        if simulation is None:
            return time.perf_counter()
        bound_s = simulation.work.bound_s(simulation.profile)
        simulation.work = Work()
        self._now_s += RATE * bound_s * self.random.gauss(1.0, NOISE)
        return self._now_s


_CLOCK = _Clock()


def start(simulation: Simulation) -> None:
    """Let the clock show the simulation's time."""
    _CLOCK.start(simulation)


def seed(number: int) -> None:
    """Let each process have noise of its own."""
    _CLOCK.random.seed(number)


def put_into(module: ModuleType) -> None:
    """Give a module this clock; without a card it is the real one."""
    module.time = SimpleNamespace(  # type: ignore[attr-defined]
        perf_counter=_CLOCK.now_s, monotonic=time.monotonic
    )
