"""What a task answers: figures and images of what ran, and else the reason."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fixtures.catalogue.matrix import Scenario
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.worker import tasks
from fixtures.worker.observation import Observation, other_beside
from fixtures.worker.protocol import Action, Facts, Opening, Task
from tests.support.answers import answer_to
from tests.support.fake_device import FakeDevice
from tests.support.fake_scenarios import observation
from tests.support.scenarios import find_scenario

NOISE = np.random.default_rng(0).random((1, 16, 16, 3)).astype(np.float32)
Observer = Callable[[Scenario], Observation]
Answered = Callable[..., Any]


def sound(scenario: Scenario) -> Observation:
    return observation(scenario.id, images=NOISE)


def fails(scenario: Scenario) -> Observation:
    raise ScenarioError(scenario.id, Outcome.BROKEN, "raised ValueError: no")


@pytest.fixture
def answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Answered:
    """The answer of a task on a fake device, as its client reads it."""

    def answer(
        action: Action = "observe",
        technique: str = "bf16",
        observer: Observer = sound,
        device: FakeDevice | None = None,
    ) -> Any:
        monkeypatch.setattr(tasks, "device_of", lambda opening: device or FakeDevice())
        monkeypatch.setattr(tasks, "observe", lambda scenario, device: observer(scenario))
        opening = Opening("cpu", "h200", "", str(tmp_path))
        return answer_to(Task(action, opening, "storybook", technique))

    return answer


def test_an_observation_comes_back_with_its_images(answered: Answered) -> None:
    observed = answered()
    assert isinstance(observed, Observation)
    here = sound(find_scenario("storybook", "bf16"))
    assert np.array_equal(np.load(observed.images_file), NOISE)
    assert not observed.images.size, "they come by the file"
    assert np.array_equal(np.load(other_beside(observed.images_file)), here.other_image)
    carried: dict[str, Any] = {
        "images": here.images,
        "other_image": here.other_image,
        "images_file": "",
    }
    assert replace(observed, **carried) == here
    assert answered().images_file != observed.images_file
    blind = answered(observer=lambda scenario: replace(sound(scenario), images=NOISE[:0]))
    assert not blind.images_file


def test_what_the_device_lacks_is_unsupported(answered: Answered) -> None:
    device = FakeDevice(lacks={"accelerator": "it is a CPU"})
    verdict = answered(technique="sequential_cpu_offload", observer=fails, device=device)
    assert (verdict.outcome, verdict.text) == (Outcome.UNSUPPORTED, "it is a CPU")


def test_a_device_says_what_it_is_and_what_it_lacks(answered: Answered) -> None:
    device = FakeDevice(lacks={"clock": "nothing runs"}, shares_core=True, memory_bytes=math.inf)
    facts = answered("facts", device=device)
    assert isinstance(facts, Facts)
    assert (facts.name, facts.key, facts.shares_core) == ("cpu", "fake", True)
    assert facts.hardware == device.hardware
    assert facts.memory_bytes == math.inf
    assert facts.missing("clock") == facts.with_values().missing("clock") == "nothing runs"
    assert facts.missing("images") is None
    assert "torch" in facts.software
