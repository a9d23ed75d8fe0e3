"""What a worker shows is asked for once; and what images are like."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pytest

from fixtures.catalogue.matrix import Scenario
from fixtures.devices import Device
from fixtures.metrics import likeness as likeness_module
from fixtures.metrics.likeness import has_flip, likeness
from fixtures.records.images import FP32, FROZEN, STORED, Images, as_stored, decoded, encoded
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.records.run import ScenarioRecord
from fixtures.worker import observations as observations_module
from fixtures.worker.client import Worker as Client
from fixtures.worker.observation import Observation
from fixtures.worker.observations import Observations, keep_images, record_likeness
from fixtures.worker.recording import new_run, record_of
from tests.support.fake_device import FakeDevice
from tests.support.fake_scenarios import (
    IMAGES,
    AnswersAtOnce,
    FakeScenario,
    fake_scenario,
    observation,
    observations_on,
)
from tests.support.scenarios import find_scenario

needs_flip = pytest.mark.skipif(not has_flip(), reason="flip-evaluator is not installed")
OTHER = IMAGES.copy()
OTHER[1, 4:12, 4:12] = 1 - OTHER[1, 4:12, 4:12]
NEARLY = np.clip(IMAGES + 0.3 / 255, 0, 1)


@dataclass
class Drawn:
    """What the technique and fp32 draw, and what is stored of them.

    An error is raised where the image is asked for; None is stored of what has none.
    """

    tried: Images = field(default_factory=lambda: OTHER)
    fp32: Images = field(default_factory=lambda: IMAGES)
    stored: dict[str, Images | Exception] = field(default_factory=dict)

    def __post_init__(self) -> None:
        fp32 = fake_scenario(print, "fp32")
        self.scenario = fake_scenario(print, others={"fp32": fp32})
        self.observations = observations_on(FakeDevice(), self._observe)

    def _observe(self, scenario: Scenario, _: object) -> Observation:
        images = self.fp32 if scenario.is_reference else self.tried
        return observation(scenario.id, images=images)

    def _stored(self, scenario: Scenario) -> Images | None:
        images = self.stored.get(scenario.technique.id)
        if isinstance(images, Exception):
            raise images
        return images

    def record(self, *, of_fp32: bool = False, keep: bool = False) -> ScenarioRecord:
        scenario: FakeScenario | Scenario = self.scenario.reference if of_fp32 else self.scenario
        record = record_of(new_run(), scenario)
        record_likeness(record, scenario, self.observations, self._stored)
        if keep:
            keep_images(record, scenario, self.observations, self._stored)
        return record


def test_a_stored_picture_that_a_prompt_hardly_changes_is_broken() -> None:
    """Its own second picture differs by more than rounding, and its first one is fp32's."""

    def drawn(prompt: str = "", **_: Any) -> Images:
        return np.random.default_rng(len(prompt)).random(IMAGES.shape)

    def stored(prompt: str = "", **_: Any) -> Images:
        return 0.9 * drawn() + 0.1 * drawn(prompt)

    fp32 = fake_scenario(drawn, "fp32")
    sound, tried = (fake_scenario(draw, others={"fp32": fp32}) for draw in (drawn, stored))
    for scenario, reason in (
        (sound, None),
        (tried, "draws something like the fp32 image of the first"),
    ):
        observations = observations_on(FakeDevice())
        record = record_of(new_run(), scenario)
        with pytest.raises(ScenarioError, match=reason) if reason else nullcontext():
            record_likeness(record, scenario, observations)
        assert observations.active(scenario).faults == {}


# What a technique's images are like


def test_a_technique_s_images_are_compared_with_fp32_s_and_with_the_stored_ones() -> None:
    record = Drawn(stored={"tried": NEARLY, "fp32": IMAGES}).record()
    assert record.likeness == {FP32: likeness(OTHER, IMAGES), STORED: likeness(OTHER, NEARLY)}
    assert record.stored_apart == likeness(NEARLY, IMAGES)
    assert record.ssim == min(image.ssim for image in record.likeness[FP32]) < 0.99
    assert record.not_compared == {}
    (same, moved) = record.likeness[FP32]
    assert (same.largest, moved.largest > 0.5) == (0.0, True)
    of_fp32_alone = Drawn(stored={"fp32": IMAGES}).record()
    assert of_fp32_alone.likeness.keys() == {FP32}
    without_fp32 = Drawn(stored={"tried": OTHER}).record()
    assert without_fp32.likeness.keys() == {FP32, STORED}
    # How far it was from fp32's is not known.
    assert of_fp32_alone.stored_apart == without_fp32.stored_apart == []


def test_what_is_drawn_is_compared_as_it_would_be_stored() -> None:
    large = np.random.default_rng(0).random((9, 16, 1024, 3))
    small = as_stored(large)
    record = Drawn(tried=large, fp32=large, stored={"tried": small, "fp32": small}).record()
    assert len(record.likeness[FP32]) == 9
    assert [image.largest for image in record.likeness[STORED]] == [0.0] * 8


@pytest.mark.parametrize(
    ("stored", "outcome", "words"),
    [
        ({"tried": ValueError("cannot be read")}, Outcome.NO_BASELINE, "cannot be read"),
        ({"tried": IMAGES, "fp32": ValueError("is no")}, Outcome.NO_BASELINE, "is no"),
        ({"tried": IMAGES[:1], "fp32": IMAGES[:1]}, Outcome.BROKEN, "shape"),
        ({"tried": IMAGES * 0, "fp32": IMAGES}, Outcome.BROKEN, "black"),
    ],
    ids=["unreadable", "fp32's unreadable", "another shape", "no image"],
)
def test_a_stored_image_that_cannot_be_compared_with_leaves_the_rest(
    stored: dict[str, Images | Exception], outcome: Outcome, words: str
) -> None:
    record = Drawn(stored=stored).record()
    said, reason = record.not_compared[STORED]
    assert said is outcome
    assert words in reason
    assert record.likeness.keys() == {FP32}
    assert record.stored_apart == []
    assert record.ssim is not None


@pytest.mark.parametrize(
    ("tried", "fp32", "complaint"),
    [
        (IMAGES * np.nan, IMAGES, "fake-tried: image 1 of 2 has NaN"),
        (IMAGES, IMAGES * np.nan, "fake-fp32: image 1 of 2 has NaN"),
        (IMAGES[:, :16], IMAGES, "fake-tried: images have shape"),
    ],
)
def test_what_is_no_image_is_broken_and_nothing_is_recorded(
    tried: Images, fp32: Images, complaint: str
) -> None:
    drawn = Drawn(tried=tried, fp32=fp32)
    record = record_of(new_run(), drawn.scenario)
    with pytest.raises(ScenarioError, match=complaint) as caught:
        record_likeness(record, drawn.scenario, drawn.observations)
    assert caught.value.outcome is Outcome.BROKEN
    assert record == record_of(new_run(), drawn.scenario)


# fp32's


def test_fp32_s_images_are_compared_with_the_stored_ones_and_not_with_its_own() -> None:
    record = Drawn(stored={"fp32": NEARLY}).record(of_fp32=True)
    assert record.likeness == {STORED: likeness(IMAGES, NEARLY)}
    assert [image.largest for image in record.stored_apart] == [0.0, 0.0]
    assert record.ssim == 1.0
    assert FROZEN not in record.not_compared, "this workload has no frozen reference"


# Pictures for a report


@needs_flip
def test_pictures_show_where_an_image_visibly_differs_from_others() -> None:
    record = Drawn(stored={"tried": NEARLY, "fp32": IMAGES}).record(keep=True)
    assert record.images == encoded(OTHER)
    assert record.stored_images == encoded(NEARLY)
    assert record.flip_maps.keys() == {FP32, STORED}
    first, second = decoded(record.flip_maps[FP32])
    assert first.max() < 0.1, "the same as fp32's"
    assert second[8, 8].max() > 0.3
    assert second[28, 28].max() < 0.3


@needs_flip
def test_what_nobody_can_see_is_not_shown() -> None:
    record = Drawn(tried=NEARLY, stored={"tried": IMAGES, "fp32": IMAGES}).record(keep=True)
    assert record.images
    assert (record.stored_images, record.flip_maps) == ([], {})
    # A single value shows that something else than rounding is at work.
    moved = IMAGES.copy()
    moved[0, 3, 4, 2] += 2 / 255 if IMAGES[0, 3, 4, 2] < 0.5 else -2 / 255
    record = Drawn(tried=moved, stored={"tried": IMAGES, "fp32": IMAGES}).record(keep=True)
    assert record.stored_images
    assert record.flip_maps.keys() == {STORED}


def test_without_flip_images_stand_beside_each_other_and_no_map(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for where in (likeness_module, observations_module):
        monkeypatch.setattr(where, "has_flip", lambda: False)
    record = Drawn(stored={"tried": NEARLY, "fp32": IMAGES}).record(keep=True)
    assert [image.flip for image in record.likeness[FP32]] == [None, None]
    assert record.stored_images
    assert record.flip_maps == {}


# Observations


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
    broken, sound, stopped = (fake_scenario(print, name) for name in ("broken", "sound", "stopped"))
    for ask in (observations.active, observations.images):
        with pytest.raises(ScenarioError, match="fake-broken: ran out of memory"):
            ask(broken)
    assert observations.active(sound) is observations.active(sound)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            observations.active(stopped)
    assert made == ["fake-broken", "fake-sound", "fake-stopped", "fake-stopped"]


@pytest.mark.parametrize("refuses", [False, True])
def test_what_comes_next_runs_beside_if_it_is_of_the_same_workload(*, refuses: bool) -> None:
    log: list[str] = []
    first, second = (find_scenario("sd15", name) for name in ("fp32", "fp16"))
    last = find_scenario("sdxl", "fp32")

    class Worker(AnswersAtOnce):
        def begin(self, action: str, scenario: Scenario) -> Any:
            log.append(f"begin {scenario.id}")
            if refuses and len(log) == 2:
                raise ScenarioError(scenario.id, Outcome.BROKEN, "its worker ended")
            task = super().begin(action, scenario)
            task.channel.poll = lambda limit_s: log.append(f"wait for {scenario.id}, {limit_s} s")
            return task

        def ask(self, action: str, expected: type, scenario: Scenario) -> Observation:
            log.append(f"ask {scenario.id}")
            return observation(scenario.id)

    observations = Observations(FakeDevice(), cast(Client, Worker()), {first: second, second: last})
    for scenario in (first, second, last, first):
        assert observations.active(scenario).scenario == scenario.id
        observations.settle()
    beside = ["begin sd15-fp32", "begin sd15-fp16", "ask sd15-fp32"]
    assert log[:-3] == [*beside, beside[1] if refuses else "wait for sd15-fp16, 1.0 s"]
    assert log[-3:] == ["ask sd15-fp16", "begin sdxl-fp32", "ask sdxl-fp32"]


def test_a_technique_that_is_not_in_effect_is_not_active_and_has_drawn_nothing() -> None:
    scenario = fake_scenario(print)
    inactive = observation(scenario.id, inactive="the UNet is in fp32")
    observations = observations_on(FakeDevice(), lambda scenario, device: inactive)
    for ask in (observations.active, observations.images):
        with pytest.raises(ScenarioError) as caught:
            ask(scenario)
        assert caught.value.outcome is Outcome.NOT_ACTIVE
        assert str(caught.value) == "fake-tried: not in effect: the UNet is in fp32"
