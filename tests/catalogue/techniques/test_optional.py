"""Techniques by DeepCache, tomesd and peft: in effect, by half, off to the last bit.

Needs the group `optional` of pyproject.toml; what is not installed is skipped.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from fixtures.catalogue.matrix import Scenario
from fixtures.catalogue.techniques import CATALOGUE, adapters, blocks
from fixtures.catalogue.techniques.registry import Wrapped
from fixtures.catalogue.workloads import WORKLOADS, Workload
from fixtures.devices.cpu import CpuDevice
from fixtures.devices.phases import denoiser
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.records.images import Images
from fixtures.worker.observation import observe
from tests.support.differences import ssim
from tests.support.half_done import STEPS, WARM_UP_STEPS, HalfDone, Spoil, complaint, nothing
from tests.support.libraries import skipped_without_libraries

UNET, LARGE, DIT = "storybook", "storybook-256", "storybook-dit"


CPU = CpuDevice()


@cache
def called(name: str, technique: str) -> Workload:
    """The workload's call: whole where steps are skipped, else two steps."""
    workload = WORKLOADS[name]
    steps = workload.call.steps if CATALOGUE[technique].skips else STEPS
    return replace(workload, call=replace(workload.call, steps=steps))


def case(technique: str, workload: str, *more: Any) -> Any:
    """A technique on a workload, and what belongs to it, skipped without its library."""
    return pytest.param(
        *(technique, workload, *more),
        id="-".join((technique, workload, *(how.how for how in more if isinstance(how, HalfDone)))),
        marks=skipped_without_libraries(CATALOGUE[technique]),
    )


CASES = [
    case(technique, name)
    for technique in ("deep_cache", "token_merging", "lora_hotswap")
    for name in CATALOGUE[technique].settings
]


def drawn(technique: str, workload: Workload) -> Images:
    with CATALOGUE[technique].applied(workload, CPU) as pipeline:
        return workload.draw(pipeline)


@pytest.mark.parametrize(("technique", "name"), CASES)
def test_in_effect_it_keeps_the_picture(technique: str, name: str) -> None:
    workload = called(name, technique)
    scenario = Scenario(workload, CATALOGUE[technique])
    plain, applied = observe(scenario.reference, CPU), observe(scenario, CPU)
    assert applied.inactive is None
    assert not applied.faults
    assert ssim(applied.images, plain.images) >= CATALOGUE[technique].min_ssim_on(name)
    if technique == "lora_hotswap":  # the second adapter adds nothing
        np.testing.assert_array_equal(applied.images, plain.images)
    else:
        assert not np.array_equal(applied.images, plain.images)


@pytest.mark.parametrize(
    ("technique", "name", "off"),
    [case("deep_cache", UNET, {"interval": 1}), case("token_merging", LARGE, {"ratio": 0.0})],
)
def test_switched_off_it_draws_the_same_picture_to_the_last_bit(
    technique: str, name: str, off: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    workload, declared = called(name, technique), CATALOGUE[technique]
    settings = {name: {**declared.settings[name], **off}}
    monkeypatch.setitem(CATALOGUE.techniques, technique, replace(declared, settings=settings))
    np.testing.assert_array_equal(drawn(technique, workload), drawn("fp32", workload))
    said = complaint(technique, workload, CPU, nothing)
    assert said is not None
    assert "0.0%" in said or "0% of the tokens" in said


@pytest.mark.parametrize(("technique", "name"), CASES)
def test_the_simulated_device_draws_it_or_says_why_not(technique: str, name: str) -> None:
    device = SimulatedDevice()
    scenario = Scenario(called(name, technique), CATALOGUE[technique])
    if technique == "token_merging":
        assert "no generator of random numbers" in str(scenario.unsupported(device))
        return
    applied, half = observe(scenario, device), observe(scenario.with_technique("fp16"), device)
    assert applied.inactive is None
    assert not applied.faults
    assert ssim(applied.images, half.images) >= CATALOGUE[technique].min_ssim_on(name)


# DeepCache


def whole_after_half(pipeline: Any) -> None:
    """After the warm-up, ten steps of twenty."""
    calls = iter(range(1000))

    def count(*_: Any) -> None:
        if next(calls) == WARM_UP_STEPS + 10:
            for module in pipeline.unet.modules():
                if module is not pipeline.unet and "forward" in module.__dict__:
                    del module.__dict__["forward"]

    pipeline.unet.register_forward_pre_hook(count)


# Token merging


def plain_blocks(share: slice) -> Spoil:
    def spoil(pipeline: Any) -> None:
        for block in list(blocks.transformer_blocks(pipeline.unet).values())[share]:
            block.__class__ = block._parent

    return spoil


def merging(**arguments: Any) -> Spoil:
    def spoil(pipeline: Any) -> None:
        pipeline.unet._tome_info["args"].update(arguments)

    return spoil


# LoRA


def half_unloaded(pipeline: Any) -> None:
    """Put the original layers back in every other place."""
    model = denoiser(pipeline)
    adapted = [name for name, layer in model.named_modules() if hasattr(layer, "lora_A")]
    for name in adapted[::2]:
        parent, _, own = name.rpartition(".")
        model.get_submodule(parent)._modules[own] = model.get_submodule(name).base_layer


def loaded_anew(pipeline: Any) -> None:
    """Take the first adapter away and load the second one into new layers."""
    inner = pipeline._pipeline
    inner.unload_lora_weights()
    second = adapters.state_dict_of(inner, adapters.RANK, zero=True)
    inner.load_lora_weights(second, adapter_name=adapters.NAME)


def first_one_again(pipeline: Any) -> None:
    """Swap the first one in once more."""
    inner = pipeline._pipeline
    inner.load_lora_weights(pipeline.first, adapter_name=adapters.NAME, hotswap=True)


LESS = "at least 35% is expected"
DEEP_CACHE = (HalfDone("deep_cache", "half the steps", whole_after_half, LESS, called=True),)
MERGING = (
    HalfDone("token_merging", "half", plain_blocks(slice(None, None, 2)), "4 of 7 blocks"),
    HalfDone("token_merging", "few tokens", merging(ratio=0.05), "5% of the tokens"),
    HalfDone("token_merging", "nowhere", merging(max_downsample=0), "merged 0 times", called=True),
)
ADAPTERS = (
    HalfDone("lora_hotswap", "half", half_unloaded, "matrices, not two each"),
    HalfDone("lora_hotswap", "loaded anew", loaded_anew, "matrices are new ones"),
    HalfDone("lora_hotswap", "not swapped", first_one_again, "hold other values"),
    HalfDone("lora_hotswap", "off", lambda p: p.disable_lora(), "without a bias", called=True),
)
HALF_DONE = [
    case(spoilt.technique, name, spoilt)
    for name, cases in ((UNET, DEEP_CACHE), (LARGE, MERGING), (UNET, ADAPTERS), (DIT, ADAPTERS))
    for spoilt in cases
]


@pytest.mark.parametrize(("technique", "name", "spoilt"), HALF_DONE)
def test_a_half_done_technique_is_inactive(technique: str, name: str, spoilt: HalfDone) -> None:
    spoilt.is_noticed(called(name, technique), CPU)


@pytest.mark.parametrize(("technique", "name"), [case("token_merging", LARGE)])
def test_tomesd_by_itself_draws_another_picture_each_time(technique: str, name: str) -> None:
    workload = called(name, technique)
    with CATALOGUE[technique].applied(workload, CPU) as pipeline:
        assert isinstance(pipeline, Wrapped)
        torch.manual_seed(1)
        first, second = (workload.draw(pipeline._pipeline) for _ in range(2))
        assert not np.array_equal(first, second)
        np.testing.assert_array_equal(workload.draw(pipeline), workload.draw(pipeline))
