"""Sides that measure nothing, in this process: `in_process` puts them in the place of real ones.

The interpreter of a side names its kind: `sound`, or how its worker fails: `import`, `crash`,
`refuse`; or how its figures differ: `more` memory, operations and host calls, `less` of all,
`wide` images, `slow` rounds; or what becomes of a scenario: `absent` where it is unsupported,
`idle` where the technique is not in effect, `broken` where it fails, `untimed` where its rounds
fail; or `elsewhere`, on another device.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fixtures.catalogue.matrix import Scenario
from fixtures.commands.compare import side
from fixtures.records.counts import FLOPS
from fixtures.records.outcome import Outcome, ScenarioError, Side
from fixtures.settings import Settings
from fixtures.worker.observation import Observation, other_beside
from fixtures.worker.protocol import Facts
from fixtures.worker.rounds import Round
from tests.support.counting import counted, host_calls
from tests.support.fake_device import FakeDevice
from tests.support.fake_scenarios import AnswersAtOnce, observation
from tests.support.fake_timed import FakeTimed
from tests.support.runs import MIB

ROUND_S = 0.1
IMAGES = tempfile.TemporaryDirectory(prefix="perf-fake-sides-")
FAILURES = {
    "absent": (Outcome.UNSUPPORTED, "needs diffusers 0.33 or later, this is 0.30.0"),
    "broken": (Outcome.BROKEN, "it does not work"),
    "crash": (Outcome.BROKEN, "{side} ended with code 3: the last thing it said"),
}
SOFTWARE = {"sound": "0.42.1"}
INACTIVE = {"idle": "it does not work"}
UNUSABLE = {
    "import": "{side} ended with code 1: ImportError: cannot import name 'FLAX_WEIGHTS_NAME'",
    "refuse": "no such accelerator",
}


class FakeWorker(AnswersAtOnce):
    """A `Worker` of one kind, as which each scenario `bf16` turns out."""

    def __init__(
        self, settings: Settings, command: Sequence[str] = ("sound",), side: Side = "head"
    ) -> None:
        self.settings, self.kind, self.side = settings, command[0], side
        self.observed: list[str] = []

    def ask(self, action: str, expected: type, scenario: Scenario | None = None) -> Any:
        """What it answers."""
        if self.kind in UNUSABLE:
            reason = UNUSABLE[self.kind].format(side=self.side)
            raise ScenarioError("", Outcome.BROKEN, reason, side=self.side)
        if scenario is None:
            key = "fake-other" if self.kind == "elsewhere" else "fake"
            facts = Facts.of(FakeDevice(name="simulated", key=key))
            return replace(facts, software={"diffusers": SOFTWARE.get(self.kind, "0.43.0")})
        self.observed.append(scenario.id)
        if self.kind in FAILURES and not scenario.is_reference:
            self.fail(scenario)
        return self.observation(scenario)

    def fail(self, scenario: Scenario) -> None:
        """Fail as it does."""
        outcome, reason = FAILURES.get(self.kind, (Outcome.BROKEN, "it does not work"))
        reason = reason.format(side=self.side)
        raise ScenarioError(scenario.id, outcome, reason, side=self.side)

    def observation(self, scenario: Scenario) -> Observation:
        """Of its kind's figures; of a call that lasts so long that few rounds are planned."""
        more = {"more": 1, "less": -1}.get(self.kind, 0)
        peak = 512 * MIB + more
        images = noise(24 if self.kind == "wide" else 16)
        file = f"{IMAGES.name}/{self.side}-{self.kind}.npy"
        np.save(file, images)
        np.save(other_beside(file), images[:1])
        of_device = counted({FLOPS: 9}, {"aten::mm": 10 + more, "aten::add": 4})
        return observation(
            scenario.id,
            component_peak_bytes={"whole": peak, "vae": peak, "denoiser": MIB},
            counts=of_device.beside(host_calls(600 + 50 * more)),
            images=images,
            images_file=file,
            call_s=100.0,
            inactive=None if scenario.is_reference else INACTIVE.get(self.kind),
        )

    def close(self) -> None:
        """Nothing to end."""


class FakeTask(FakeTimed):
    """Times a scenario on a fake worker."""

    def __init__(self, worker: FakeWorker, scenario: Scenario) -> None:
        slower = 1.1 if worker.kind == "slow" else 1.0
        super().__init__(lambda number: ROUND_S * slower, share=0.5)
        self._worker, self._scenario = worker, scenario

    def round(self) -> Round:
        if self._worker.kind == "untimed":
            self._worker.fail(self._scenario)
        return super().round()

    def evidence(self) -> str:
        return "load 0.5"


def noise(width: int) -> Any:
    return np.random.default_rng(0).random((1, 16, width, 3))


def fake_side(kind: str, name: Side) -> side.Side:
    """A side of this kind."""
    return side.Side(FakeWorker(Settings(), [kind], name))  # type: ignore[arg-type]


def in_process(patch: pytest.MonkeyPatch) -> None:
    """Let every side be a fake of the kind that its interpreter names."""
    patch.setattr(side, "Worker", FakeWorker)
    patch.setattr(side, "TimedTask", FakeTask)
