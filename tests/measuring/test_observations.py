"""The observations of a run: each is made once, and what failed fails again."""

from __future__ import annotations

from typing import Any

import pytest

from fixtures.devices import Device
from fixtures.measuring.observation import Observation
from fixtures.records.images import Images
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.scenarios import Scenario
from tests.support.fake_device import FakeDevice
from tests.support.fake_scenarios import IMAGES, fake_scenario, observation, observations_on

pytestmark = pytest.mark.usefixtures("no_garbage")


def draw(**_: Any) -> Images:
    return IMAGES


def test_an_observation_is_made_once_and_what_failed_fails_again_but_for_an_interrupt() -> None:
    made: list[str] = []

    def observer(scenario: Scenario, device: Device) -> Observation:
        made.append(scenario.id)
        if scenario.id == "fake-broken":
            raise ScenarioError(scenario.id, Outcome.BROKEN, "ran out of memory")
        if scenario.id == "fake-stopped":
            raise KeyboardInterrupt
        return observation(scenario.id)

    observations = observations_on(FakeDevice(), observer)
    broken, sound, stopped = (fake_scenario(draw, name) for name in ("broken", "sound", "stopped"))
    for ask in (observations.get, observations.active, observations.images):
        with pytest.raises(ScenarioError, match="fake-broken: ran out of memory"):
            ask(broken)
    assert observations.active(sound) is observations.get(sound)
    assert observations.get(sound).scenario == "fake-sound"
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            observations.get(stopped)
    assert made == ["fake-broken", "fake-sound", "fake-stopped", "fake-stopped"]


def test_a_technique_that_is_not_in_effect_is_not_active_and_has_drawn_nothing() -> None:
    scenario = fake_scenario(draw, complaint="the UNet is in fp32")
    observations = observations_on(FakeDevice())
    assert observations.get(scenario).inactive == "the UNet is in fp32"
    for ask in (observations.active, observations.images):
        with pytest.raises(ScenarioError) as caught:
            ask(scenario)
        assert caught.value.outcome is Outcome.NOT_ACTIVE
        assert str(caught.value) == "fake-tried: not in effect: the UNet is in fp32"
