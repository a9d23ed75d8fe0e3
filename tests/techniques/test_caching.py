"""Caches: in effect, in full, off to the last bit, undone; and two prompts that share one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from diffusers.hooks import HookRegistry
from diffusers.hooks.faster_cache import FasterCacheBlockHook
from diffusers.hooks.pyramid_attention_broadcast import PyramidAttentionBroadcastHook

from fixtures.devices import Trace
from fixtures.devices.cpu import CpuDevice
from fixtures.records.images import Images
from fixtures.techniques import CATALOGUE
from fixtures.techniques.skipping import linear_work, prompts_are_apart, skips_at_least
from fixtures.techniques.technique import ActivationContext
from fixtures.verdicts.similarity import ssim
from fixtures.workloads import WORKLOADS
from tests.support.half_done import complaint, nothing

WORKLOAD = WORKLOADS["storybook-dit"]
OFF: dict[str, dict[str, Any]] = {
    "first_block_cache": {"threshold": 0.0},
    "taylorseer_cache": {"warm_up_steps": WORKLOAD.call.steps},
    "taylorseer_lite_cache": {"warm_up_steps": WORKLOAD.call.steps},
    "mag_cache": {"threshold": 0.0},
    "pyramid_attention_broadcast": {"timesteps": (0, 0)},
    "faster_cache": {"timesteps": (0, 0)},
}
"""Settings with which a cache leaves nothing out."""
SHARED = ("pyramid_attention_broadcast", "faster_cache")
"""Those that know but one cache, whatever prompt a call is for."""
APART = tuple(name for name in OFF if name not in SHARED)


@pytest.fixture(scope="module")
def cpu() -> CpuDevice:
    return CpuDevice()


@pytest.fixture(scope="module")
def fp32(cpu: CpuDevice) -> Images:
    return drawn("fp32", cpu)


def drawn(name: str, device: CpuDevice) -> Images:
    with CATALOGUE[name].applied(WORKLOAD, device) as pipeline:
        return WORKLOAD.draw(pipeline)


def test_every_cache_is_tried_here() -> None:
    # DeepCache is of a UNet, and of a library: `test_optional.py`.
    caches = {one.id for one in CATALOGUE if one.family == "caching"}
    assert {*OFF, "deep_cache"} == caches


@pytest.mark.parametrize("name", APART)
def test_in_effect_it_skips_work_and_keeps_the_picture(
    name: str, cpu: CpuDevice, fp32: Images
) -> None:
    assert complaint(name, WORKLOAD, cpu, nothing) is None
    assert not np.array_equal(drawn(name, cpu), fp32)


@pytest.mark.parametrize("name", OFF)
def test_switched_off_it_draws_the_same_picture_to_the_last_bit(
    name: str, cpu: CpuDevice, fp32: Images, monkeypatch: pytest.MonkeyPatch
) -> None:
    technique = CATALOGUE[name]
    settings = {**technique.settings[WORKLOAD.name], **OFF[name]}
    off = replace(technique, settings={WORKLOAD.name: settings})
    monkeypatch.setitem(CATALOGUE.techniques, name, off)
    assert np.array_equal(drawn(name, cpu), fp32)
    said = complaint(name, WORKLOAD, cpu, nothing)
    assert said is not None
    assert "left out 0.0%" in said


def without_half_of_its_hooks(pipeline: Any) -> None:
    """Remove the cache from every other module that has it, but from the first and the last.

    Those decide for all, and note what there is to use again.
    """
    hooked = [
        module
        for module in pipeline.transformer.modules()
        if (registry := getattr(module, "_diffusers_hook", None)) is not None
        and any(cache in name for name in registry.hooks for cache in ("block", "taylor"))
    ]
    assert len(hooked) > 4
    for module in hooked[1:-1:2]:
        registry = HookRegistry.check_if_exists_or_initialize(module)
        for name in list(registry.hooks):
            if "leader" not in name:
                registry.remove_hook(name, recurse=False)


@pytest.mark.parametrize("name", APART)
def test_on_half_of_the_blocks_it_is_not_in_effect(name: str, cpu: CpuDevice) -> None:
    said = complaint(name, WORKLOAD, cpu, without_half_of_its_hooks)
    assert said is not None
    assert "is expected" in said


@pytest.mark.parametrize("name", APART)
def test_disabled_in_the_middle_it_is_not_in_effect(name: str, cpu: CpuDevice) -> None:
    def disable_after_half(pipeline: Any) -> None:
        calls = iter(range(1000))
        # Two of warming up, then ten of the observed twenty steps; two prompts each.
        at = 2 * (2 + 11)

        def count(*_: Any) -> None:
            if next(calls) == at:
                pipeline.transformer.disable_cache()

        pipeline.transformer.register_forward_pre_hook(count)

    said = complaint(name, WORKLOAD, cpu, disable_after_half)
    assert said is not None
    assert "is expected" in said


@pytest.mark.parametrize("name", OFF)
def test_leaving_it_restores_the_transformer(name: str, cpu: CpuDevice, fp32: Images) -> None:
    with CATALOGUE[name].applied(WORKLOAD, cpu) as pipeline:
        WORKLOAD.draw(pipeline)
    assert not pipeline.transformer.is_cache_enabled
    assert np.array_equal(WORKLOAD.draw(pipeline), fp32)


@pytest.mark.parametrize("name", SHARED)
def test_two_prompts_that_share_one_cache_are_found(name: str, cpu: CpuDevice) -> None:
    said = complaint(name, WORKLOAD, cpu, nothing)
    assert said is not None
    assert "in 13 of 20 steps what was computed for one was used for the other" in said


def give_each_prompt_its_own(hook: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mend a hook of diffusers: calls for the two prompts of a step come one after the other."""
    new_forward: Any = vars(hook)["new_forward"]
    states: dict[int, list[Any]] = {}

    def forward(self: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        both = states.setdefault(id(self), [self.state, type(self.state)()])
        self.state = both[0]
        both.reverse()
        return new_forward(self, module, *args, **kwargs)

    def reset(self: Any, module: Any) -> Any:
        states.pop(id(self), None)
        self.state = type(self.state)()
        return module

    monkeypatch.setattr(hook, "new_forward", forward)
    monkeypatch.setattr(hook, "reset_state", reset)


@pytest.mark.parametrize(
    ("name", "hook"),
    [(SHARED[0], PyramidAttentionBroadcastHook), (SHARED[1], FasterCacheBlockHook)],
)
def test_with_a_cache_for_each_prompt_they_are_in_effect_and_keep_the_picture(
    name: str, hook: type, cpu: CpuDevice, fp32: Images, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So what is found is what is wrong with them, and all that is."""
    mixed = ssim(drawn(name, cpu), fp32)
    give_each_prompt_its_own(hook, monkeypatch)
    assert complaint(name, WORKLOAD, cpu, nothing) is None
    assert mixed < CATALOGUE[name].min_ssim_on(WORKLOAD.name) < ssim(drawn(name, cpu), fp32)


# What is counted


def context(work: Sequence[int]) -> ActivationContext:
    workload = replace(WORKLOAD, call=replace(WORKLOAD.call, steps=3))
    return ActivationContext(None, Trace(), [], workload, CpuDevice(), work)


@pytest.mark.parametrize(
    ("work", "apart"),
    [
        pytest.param([10] * 6, True, id="nothing skipped"),
        pytest.param([10, 10, 4, 4, 10, 10], True, id="the same for both"),
        pytest.param([10, 4] * 3, False, id="one computed, the other taken from it"),
        pytest.param([10, 4, 4], True, id="one prompt"),
    ],
)
def test_prompts_are_apart_where_the_same_is_skipped_for_both(
    work: Sequence[int], apart: bool
) -> None:
    assert (prompts_are_apart(context(work)) is None) == apart


@pytest.mark.parametrize(
    ("work", "enough"),
    [([10, 4], True), ([10, 5], False), ([10, 10], False), ([], False), ([0, 0], False)],
)
def test_the_share_is_of_what_the_first_call_did(work: Sequence[int], enough: bool) -> None:
    said = skips_at_least({WORKLOAD.name: 0.3})(context(work))
    assert (said is None) == enough


def test_each_workload_has_its_own_share() -> None:
    check = skips_at_least({WORKLOAD.name: 0.3, "flux": 0.7})
    flux = replace(context([10, 4]), workload=WORKLOADS["flux"])
    assert check(context([10, 4])) is None
    assert "left out 30.0%" in (check(flux) or "")
    assert "at least 70% is expected" in (check(flux) or "")


def test_work_is_counted_by_call_of_the_denoiser(cpu: CpuDevice) -> None:
    with CATALOGUE["fp32"].applied(WORKLOAD, cpu) as pipeline:
        with linear_work(pipeline) as work:
            WORKLOAD.draw(pipeline, steps=2)
        counted = list(work)
        WORKLOAD.draw(pipeline, steps=1)
    assert len(counted) == 4
    assert len(set(counted)) == 1
    # The transformer has 6.2 million weights and 96 tokens; norms' projections see one token.
    assert 200e6 < counted[0] < 96 * 6.3e6
    assert work == counted
