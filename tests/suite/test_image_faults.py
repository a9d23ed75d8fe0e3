"""Faults that leave SSIM with fp32's image high: each is seen, and the sentence says by what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import Tensor, nn

from fixtures.catalogue.matrix import Scenario
from fixtures.devices import Device, open_device
from fixtures.devices.phases import denoiser
from fixtures.metrics import images as image_metric
from fixtures.metrics.case import Case
from fixtures.records.baseline_store import BaselineStore
from fixtures.records.images import Images, decoded
from fixtures.records.outcome import Outcome, Verdict
from fixtures.records.run import ScenarioRecord
from fixtures.worker.observation import Observation
from fixtures.worker.observations import record_likeness
from tests.support.fake_scenarios import observation, observations_on
from tests.support.scenarios import find_scenario

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
            images = sound_images(scenario)
        else:
            with scenario.running(device) as pipeline, self.inside(pipeline):
                images = scenario.workload.draw(pipeline, **self.call)
            images = self.after(np.array(images))
        return observation(scenario.id, images=images)

    def verdicts(self) -> list[Verdict]:
        """Those on its images, by the stored baseline of the CPU."""
        device = open_device("cpu")
        name, _, technique = self.scenario.rpartition("-")
        scenario = find_scenario(name, technique)
        entry = STORE.entry("cpu", name, technique)
        assert entry
        record = ScenarioRecord(scenario.id, name, technique, "family")
        record_likeness(
            record,
            scenario,
            observations_on(device, self.observed),
            lambda _: decoded(entry.images),
        )
        case = Case(
            scenario.id,
            entry,
            {},
            min_ssim=scenario.technique.min_ssim_on(name),
            harmless=scenario.harmless("cpu"),
        )
        return image_metric.METRIC.judge(case, record)


# What a faulty release would do inside a pipeline


@contextmanager
def _hooked(modules: Sequence[nn.Module], change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Change every floating tensor of the modules' outputs."""

    def changed(output: Any) -> Any:
        if isinstance(output, Tensor):
            return change(output) if output.is_floating_point() else output
        if isinstance(output, dict):
            for name, value in output.items():
                output[name] = changed(value)
            return output
        return type(output)(map(changed, output)) if isinstance(output, (tuple, list)) else output

    with ExitStack() as stack:
        for module in modules:
            hook = module.register_forward_hook(lambda m, given, output: changed(output))
            stack.callback(hook.remove)
        yield


def denoiser_output(pipeline: Any, factor: float) -> AbstractContextManager[None]:
    return _hooked([denoiser(pipeline)], lambda tensor: tensor * factor)


def dead_channels(pipeline: Any, share: float) -> AbstractContextManager[None]:
    """A share of the channels of the first attention's output."""

    def change(tensor: Tensor) -> Tensor:
        kept = tensor.clone()
        kept[..., : int(tensor.shape[-1] * share)] = 0
        return kept

    named = denoiser(pipeline).named_modules()
    first = next(module for name, module in named if name.split(".")[-1].startswith("attn"))
    return _hooked([first], change)


@contextmanager
def vae_scaling(pipeline: Any, factor: float) -> Iterator[None]:
    before = pipeline.vae.config.scaling_factor
    pipeline.vae.register_to_config(scaling_factor=before * factor)
    yield
    pipeline.vae.register_to_config(scaling_factor=before)


# What it would do to an image


def grey_levels(images: Images) -> Images:
    """Sixteen of them."""
    return np.round(images * 15) / 15


BASELINE, FP32 = "differs from the baseline's: ", "differs from fp32's: "
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
    "red and blue exchanged": (
        Fault("storybook-dit-fp32", after=lambda images: images[..., ::-1], everywhere=True),
        (BASELINE,),
    ),
    "another prompt": (
        Fault("storybook-dit-fp32", call={"prompt": "a red car in the city"}, everywhere=True),
        (BASELINE,),
    ),
    "16 grey levels in tiles": (Fault("storybook-256-vae_tiling", after=grey_levels), (BASELINE,)),
    "the first prompt for all of a batch": (
        Fault("storybook-batch8-vae_slicing", call={"further_prompts": ()}),
        (BASELINE, FP32),
    ),
    "the first prompt for all of a batch, everywhere": (
        Fault("storybook-batch8-fp32", call={"further_prompts": ()}, everywhere=True),
        (BASELINE,),
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_seen_and_named(name: str) -> None:
    fault, sentences = FAULTS[name]
    failed = [v.sentence for v in fault.verdicts() if v.outcome is Outcome.REGRESSION]
    for sentence in sentences:
        assert any(sentence in text for text in failed), failed


@pytest.mark.parametrize(
    "name", ["storybook-sdpa", "storybook-dit-fp32", "storybook-256-vae_tiling"]
)
def test_sound_images_pass(name: str) -> None:
    outcomes = {verdict.outcome for verdict in Fault(name).verdicts()}
    assert outcomes - {Outcome.NOT_JUDGED} == {Outcome.PASS}
