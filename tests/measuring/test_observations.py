"""The observations of a run: each is made once, and what failed fails again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
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


def counting(
    made: list[str], show: Callable[[Scenario], Observation]
) -> Callable[[Scenario, Device], Observation]:
    """An observer that writes down whom it observed."""

    def observer(scenario: Scenario, device: Device) -> Observation:
        made.append(scenario.id)
        return show(scenario)

    return observer


def test_an_observation_is_made_once() -> None:
    made: list[str] = []
    observations = observations_on(FakeDevice(), counting(made, lambda one: observation(one.id)))
    one, other = fake_scenario(draw, "one"), fake_scenario(draw, "other")
    first = observations.get(one)
    assert observations.active(one) is observations.get(one) is first
    assert observations.get(other).scenario == "fake-other"
    assert made == ["fake-one", "fake-other"]


def test_a_failure_is_remembered_and_the_next_scenario_runs() -> None:
    made: list[str] = []

    def show(scenario: Scenario) -> Observation:
        if scenario.id == "fake-broken":
            raise ScenarioError(scenario.id, Outcome.BROKEN, "ran out of memory")
        return observation(scenario.id)

    device = FakeDevice()
    observations = observations_on(device, counting(made, show))
    broken = fake_scenario(draw, "broken")
    errors = []
    for ask in (observations.get, observations.active, observations.images):
        with pytest.raises(ScenarioError) as caught:
            ask(broken)
        errors.append(caught.value)
    assert {str(error) for error in errors} == {"fake-broken: ran out of memory"}
    observations.get(fake_scenario(draw, "next"))
    assert made == ["fake-broken", "fake-next"]


def test_an_interrupt_is_no_broken_scenario() -> None:
    def show(scenario: Scenario) -> Observation:
        raise KeyboardInterrupt

    made: list[str] = []
    observations = observations_on(FakeDevice(), counting(made, show))
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            observations.get(fake_scenario(draw))
    assert made == ["fake-tried"] * 2, "nothing was remembered"


def test_a_technique_that_is_not_in_effect_is_not_active_and_has_drawn_nothing() -> None:
    scenario = fake_scenario(draw, complaint="the UNet is in fp32")
    observations = observations_on(FakeDevice())
    assert observations.get(scenario).inactive == "the UNet is in fp32"
    for ask in (observations.active, observations.images):
        with pytest.raises(ScenarioError) as caught:
            ask(scenario)
        assert caught.value.outcome is Outcome.NOT_ACTIVE
        assert str(caught.value) == "fake-tried: not in effect: the UNet is in fp32"


def images_of(images: Images) -> Images:
    return observations_on(FakeDevice()).images(fake_scenario(lambda **_: images))


@pytest.mark.parametrize(
    ("images", "complaint"),
    [
        (IMAGES * np.nan, "fake-tried: image 1 of 2 has NaN"),
        (IMAGES * 0, "fake-tried: image 1 of 2 is black"),
        (IMAGES[0], "fake-tried: images have shape"),
    ],
)
def test_what_is_no_image_is_broken(images: Images, complaint: str) -> None:
    assert np.array_equal(images_of(IMAGES), IMAGES)
    with pytest.raises(ScenarioError) as caught:
        images_of(images)
    assert caught.value.outcome is Outcome.BROKEN
    assert str(caught.value).startswith(complaint)
