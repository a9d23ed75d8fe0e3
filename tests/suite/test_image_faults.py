"""Faults that leave SSIM with fp32's image high: each is seen, and the sentence says by what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fixtures.devices import Device, open_device
from fixtures.measuring.observation import Observation
from fixtures.measuring.observations import Observations
from fixtures.measuring.pictures import record_likeness
from fixtures.metrics import images as image_metric
from fixtures.records.baseline_store import BaselineStore
from fixtures.records.images import Images
from fixtures.records.outcome import Outcome, Verdict
from fixtures.records.run import ScenarioRecord
from fixtures.scenarios import Scenario, find_scenario
from fixtures.studies.images.damages import gamma, grey_levels, noise
from fixtures.studies.images.mistakes import (
    dead_channels,
    denoiser_output,
    text_states,
    vae_scaling,
)
from fixtures.verdicts.case import Case
from tests.support.fake_scenarios import observation

pytestmark = pytest.mark.long
STORE = BaselineStore(Path(__file__).parents[2] / "baselines")


def untouched(pipeline: Any) -> AbstractContextManager[None]:
    return nullcontext()


@cache
def sound_images(scenario: Scenario) -> Images:
    with scenario.running(open_device("cpu")) as pipeline:
        return np.array(scenario.workload.draw(pipeline))


@dataclass(frozen=True)
class Fault:
    """What goes wrong, and whether in the fp32 run, too, as a faulty release would have it."""

    scenario: str
    inside: Callable[[Any], AbstractContextManager[None]] = untouched
    call: Mapping[str, Any] = field(default_factory=dict)
    after: Callable[[Images], Images] = lambda images: images
    everywhere: bool = False

    def observed(self, scenario: Scenario, device: Device) -> Observation:
        """The observation of a scenario, of which only the images were made."""
        if scenario.is_reference and not self.everywhere:
            return observation(scenario.id, images=sound_images(scenario))
        with scenario.running(device) as pipeline, self.inside(pipeline):
            images = scenario.workload.draw(pipeline, **self.call)
        return observation(scenario.id, images=self.after(np.array(images)))

    def verdicts(self) -> list[Verdict]:
        """Those on its images, by the stored baseline of the CPU."""
        device = open_device("cpu")
        name, _, technique = self.scenario.rpartition("-")
        scenario = find_scenario(name, technique)
        record = ScenarioRecord(scenario.id, name, technique, "family")
        record_likeness(
            record,
            scenario,
            Observations(device, self.observed),
            lambda one: STORE.images("cpu", one.stored_as, one.technique.id),
        )
        case = Case(
            scenario.id,
            STORE.entry("cpu", name, technique),
            {},
            min_ssim=scenario.technique.min_ssim_on(name),
            harmless=scenario.harmless("cpu"),
        )
        return image_metric.METRIC.judge(case, record)


def every_image(damage: Callable[[Any, float], Any], strength: float) -> Callable[[Images], Images]:
    def change(images: Images) -> Images:
        damaged = [np.clip(damage(one.astype(np.float64), strength), 0, 1) for one in images]
        return np.stack(damaged).astype(np.float32)

    return change


BASELINE, FP32, PROMPT = (
    "differs from the baseline's: ",
    "differs from fp32's: ",
    "prompt asks for",
)
FAULTS = {
    "guidance 4 for 5": (
        Fault("storybook-attention_slicing", call={"guidance_scale": 4.0}),
        (BASELINE, FP32),
    ),
    "latents scaled by 1.1": (
        Fault("storybook-sdpa", lambda pipeline: vae_scaling(pipeline, 1.1), everywhere=True),
        (BASELINE,),
    ),
    "the UNet's output by 1.05": (
        Fault("storybook-sdpa", lambda pipeline: denoiser_output(pipeline, 1.05)),
        (BASELINE, FP32),
    ),
    "a part of one attention dead": (
        Fault("storybook-channels_last", lambda pipeline: dead_channels(pipeline, 0.1)),
        (BASELINE, FP32),
    ),
    "the transformer's latents scaled by 2": (
        Fault("storybook-dit-fp32", lambda pipeline: vae_scaling(pipeline, 2.0), everywhere=True),
        (BASELINE,),
    ),
    "red and blue exchanged": (
        Fault("storybook-dit-fp32", after=lambda images: images[..., ::-1], everywhere=True),
        (BASELINE,),
    ),
    "text encoders of zeros": (
        Fault("storybook-dit-fp32", lambda pipeline: text_states(pipeline, 0.0), everywhere=True),
        (BASELINE,),
    ),
    "another prompt": (
        Fault("storybook-dit-fp32", call={"prompt": "a red car in the city"}, everywhere=True),
        (BASELINE, PROMPT),
    ),
    "16 grey levels in tiles": (
        Fault("storybook-256-vae_tiling", after=every_image(grey_levels, 16)),
        (BASELINE,),
    ),
    "gamma 1.5 in tiles": (
        Fault("storybook-256-vae_tiling", after=every_image(gamma, 1.5)),
        (BASELINE, FP32),
    ),
    "noise in tiles": (
        Fault("storybook-256-vae_tiling", after=every_image(noise, 6)),
        (BASELINE,),
    ),
    "the first prompt for all of a batch": (
        Fault("storybook-batch8-vae_slicing", call={"further_prompts": ()}),
        (BASELINE, FP32),
    ),
    "the first prompt for all of a batch, everywhere": (
        Fault("storybook-batch8-fp32", call={"further_prompts": ()}, everywhere=True),
        (BASELINE, PROMPT),
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_seen_and_named(name: str) -> None:
    fault, sentences = FAULTS[name]
    failed = [v.sentence for v in fault.verdicts() if v.outcome is Outcome.REGRESSION]
    for sentence in sentences:
        assert any(sentence in one for one in failed), failed


@pytest.mark.parametrize(
    "name", ["storybook-sdpa", "storybook-dit-fp32", "storybook-256-vae_tiling"]
)
def test_sound_images_pass(name: str) -> None:
    outcomes = {verdict.outcome for verdict in Fault(name).verdicts()}
    assert outcomes - {Outcome.NOT_JUDGED} == {Outcome.PASS}
