"""Scenarios that run a function of the test, and observations that nobody made."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from fixtures.devices import Device
from fixtures.measuring.observation import Observation, observe
from fixtures.measuring.timed import draw_frozen
from fixtures.records.run import WHOLE
from fixtures.scenarios import Scenario
from fixtures.techniques import CATALOGUE, REFERENCE
from fixtures.worker.client import Worker
from fixtures.worker.observations import Observations
from fixtures.workloads import Workload
from fixtures.workloads.base import FrozenSource
from tests.support.counting import counts, host_calls

STEPS = 4
IMAGES = np.random.default_rng(0).random((2, 32, 32, 3))
Draw = Callable[..., Any]


@dataclass
class FakePipeline:
    """Nothing but a function to call."""

    draw: Draw
    components: Mapping[str, Any] = field(default_factory=dict)
    scheduler: Any = None

    def __call__(self, **changes: Any) -> Any:
        """Call the function."""
        return self.draw(**changes)


class FakeWorkload:
    """Draws by calling the pipeline."""

    name = described = "fake"
    weights = repository = ""
    default_weights = ""
    call = SimpleNamespace(steps=STEPS)
    representative_steps = 3
    steps_of_timed_call = STEPS
    frozen: FrozenSource | None = None
    is_embedded = False
    without: Mapping[str, str] = {}

    @property
    def by_configuration(self) -> FakeWorkload:
        """Itself: it has no weights."""
        return self

    def draw(self, pipeline: FakePipeline, **changes: Any) -> Any:
        """Call the pipeline."""
        return pipeline(**changes)


@dataclass(frozen=True)
class FakeScenario(Scenario):
    """A scenario beside which the test puts others, by technique."""

    others: Mapping[str, Scenario] = field(default_factory=dict)

    @property
    def reference(self) -> Scenario:
        """The one that the test gave, or itself."""
        return self.others.get(REFERENCE, self)

    def with_technique(self, technique: str) -> Scenario:
        """The one that the test gave."""
        return self.others[technique]

    __hash__ = Scenario.__hash__


def fake_scenario(
    draw: Draw,
    name: str = "tried",
    *,
    complaint: str | None = None,
    enter: Callable[[], object] = lambda: None,
    leave: Callable[[], object] = lambda: None,
    others: Mapping[str, Scenario] | None = None,
    scheduler: Any = None,
    **facts: Any,
) -> FakeScenario:
    """A scenario whose pipeline calls the function `draw`.

    `complaint` is its activation check's, `enter` and `leave` are called around the pipeline's
    life, its steps are those of `scheduler`, and `facts` are fields of its technique.
    """

    def apply(workload: Workload, device: Any) -> Iterator[Any]:
        enter()
        yield FakePipeline(draw, scheduler=scheduler)
        leave()

    technique = replace(
        CATALOGUE["fp16"], id=name, apply=apply, activation_check=lambda context: complaint, **facts
    )
    return FakeScenario(cast(Workload, FakeWorkload()), technique, others or {})


def observation(scenario: str = "storybook-fp16", **changes: Any) -> Observation:
    """A sound observation, with some fields replaced."""
    fields: dict[str, Any] = {
        "component_peak_bytes": {WHOLE: 1000, "vae": 400},
        "counts": counts(mm=10).beside(host_calls()),
        "call_s": 1.0,
        "images": IMAGES[:1],
        "inactive": None,
    }
    return Observation(scenario=scenario, **{**fields, **changes})


Observer = Callable[[Scenario, Device], Observation]


class AnswersAtOnce:
    """A worker whose tasks are done when they are asked; `ask` does them."""

    limit_s = 1.0

    def begin(self, action: Any, scenario: Scenario) -> Any:
        """A task, as its client sees it."""
        mine: Any = self
        return SimpleNamespace(
            ask=lambda _, expected: mine.ask(action, expected, scenario),
            channel=SimpleNamespace(poll=bool),
            close=lambda: None,
        )


@dataclass
class InProcess(AnswersAtOnce):
    """A worker that does what it is asked in this process."""

    device: Device
    observer: Observer

    def ask(self, action: str, expected: type, scenario: Scenario) -> Any:
        """An observation, or a file of images."""
        if action == "observe":
            return self.observer(scenario, self.device)
        assert action == "draw frozen"
        file = io.BytesIO()
        np.save(file, draw_frozen(scenario, self.device))
        file.seek(0)
        return file


def observations_on(device: Device, observer: Observer = observe) -> Observations:
    """Observations that are made in this process."""
    return Observations(device, cast(Worker, InProcess(device, observer)))
