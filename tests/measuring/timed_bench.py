"""A fake device, and pipelines that let its clock run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.fake_device import FakeDevice
from tests.support.fake_scenarios import STEPS, FakeScenario, fake_scenario

SET_UP_S = 100.0


class TimedBench:
    """Warming up and building take `SET_UP_S`; so does each new layout.

    `calls` are by name the steps of each call, `built` the names of pipelines.
    """

    def __init__(self) -> None:
        self.device = FakeDevice(layout_s=SET_UP_S)
        self.calls: dict[str, list[int | None]] = {}
        self.built: list[str] = []

    def scenario(
        self, name: str, seconds: Callable[[int], float] = lambda number: 1.0, **options: Any
    ) -> FakeScenario:
        """A scenario whose n-th timed call lasts `seconds(n)`."""

        def draw(steps: int | None = None) -> None:
            self.count(name, steps, seconds)

        def built() -> None:
            self.built.append(name)
            self.device.now_s += SET_UP_S

        return fake_scenario(draw, name, enter=built, **options)

    def count(self, name: str, steps: int | None, seconds: Callable[[int], float]) -> None:
        """Note a call, and let the clock run."""
        self.calls.setdefault(name, []).append(steps)
        self.device.now_s += seconds(self.timed(name)) if steps == STEPS else SET_UP_S

    def timed(self, name: str) -> int:
        """How many whole calls there were."""
        return self.calls.get(name, []).count(STEPS)
