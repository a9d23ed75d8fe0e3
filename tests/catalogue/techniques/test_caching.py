"""Caches: in effect, in full, off to the last bit; and two prompts that share one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from diffusers.hooks.faster_cache import FasterCacheBlockHook
from diffusers.hooks.pyramid_attention_broadcast import PyramidAttentionBroadcastHook

from fixtures.catalogue.techniques import CATALOGUE
from fixtures.catalogue.techniques.caching import skips_at_least
from fixtures.catalogue.techniques.snapshots import linear_work
from fixtures.catalogue.techniques.technique import ActivationContext
from fixtures.catalogue.workloads import WORKLOADS
from fixtures.devices import Trace
from fixtures.devices.cpu import CpuDevice
from fixtures.records.images import Images
from tests.support.differences import ssim

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
CPU = CpuDevice()


class Drawn(NamedTuple):
    """What one call drew, and what the check said."""

    images: Images
    complaint: str | None


def drawn(name: str, *, spoil: Callable[[Any], object] = bool, **settings: Any) -> Drawn:
    """One call with the technique, its settings replaced, its pipeline spoilt."""
    technique = CATALOGUE[name]
    if settings:
        settings = {**technique.settings[WORKLOAD.name], **settings}
        technique = replace(technique, settings={WORKLOAD.name: settings})
    with technique.applied(WORKLOAD, CPU) as pipeline:
        spoil(pipeline)
        with linear_work(pipeline) as work:
            images = WORKLOAD.draw(pipeline)
        context = ActivationContext(pipeline, Trace(), [], WORKLOAD, CPU, work)
        complaint = technique.activation_check(context)
    return Drawn(images, complaint)


@cache
def in_full(name: str) -> Drawn:
    return drawn(name)


@cache
def fp32() -> Images:
    with CATALOGUE["fp32"].applied(WORKLOAD, CPU) as pipeline:
        return WORKLOAD.draw(pipeline)


def test_every_cache_is_tried_here() -> None:
    # DeepCache is of a UNet, and of a library: `test_optional.py`.
    caches = {technique.id for technique in CATALOGUE if technique.family == "caching"}
    assert {*OFF, "deep_cache"} == caches


@pytest.mark.parametrize("name", OFF)
def test_in_full_it_changes_the_picture(name: str) -> None:
    whole = in_full(name)
    if name in APART:
        assert whole.complaint is None
    else:
        assert "in 13 of 20 steps what was computed for one was used" in str(whole.complaint)
    assert not np.array_equal(whole.images, fp32())


@pytest.mark.parametrize("name", OFF)
def test_switched_off_it_draws_the_same_picture_to_the_last_bit(name: str) -> None:
    off = drawn(name, **OFF[name])
    assert np.array_equal(off.images, fp32())
    assert "left out 0.0%" in (off.complaint or "")


def disabled_in_the_middle(pipeline: Any) -> None:
    calls = iter(range(1000))

    def count(*_: Any) -> None:
        if next(calls) == WORKLOAD.call.steps:  # of two prompts in each step
            pipeline.transformer.disable_cache()

    pipeline.transformer.register_forward_pre_hook(count)


@pytest.mark.parametrize("name", APART)
def test_in_half_of_the_steps_it_is_not_in_effect(name: str) -> None:
    assert "is expected" in (drawn(name, spoil=disabled_in_the_middle).complaint or "")


def give_each_prompt_its_own(hook: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mend a hook of diffusers: calls for the two prompts of a step come one after the other."""
    new_forward: Any = vars(hook)["new_forward"]
    states: dict[int, list[Any]] = {}

    def forward(self: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        of_prompts = states.setdefault(id(self), [self.state, type(self.state)()])
        self.state = of_prompts[0]
        of_prompts.reverse()
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
    name: str, hook: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So what is found is what is wrong with them, and all that is."""
    mixed = in_full(name)
    give_each_prompt_its_own(hook, monkeypatch)
    mended = drawn(name)
    assert mended.complaint is None
    least = CATALOGUE[name].min_ssim_on(WORKLOAD.name)
    assert ssim(mixed.images, fp32()) < least < ssim(mended.images, fp32())


# What is counted


def context(work: Sequence[int]) -> ActivationContext:
    workload = replace(WORKLOAD, call=replace(WORKLOAD.call, steps=3))
    return ActivationContext(None, Trace(), [], workload, CPU, work)


@pytest.mark.parametrize(
    ("work", "enough"),
    [([10, 4], True), ([10, 5], False), ([10, 10], False), ([], False), ([0, 0], False)],
)
def test_the_share_is_of_what_the_first_call_did_by_workload(
    work: Sequence[int], enough: bool
) -> None:
    check = skips_at_least({WORKLOAD.name: 0.3, "flux": 0.7})
    assert (check(context(work)) is None) == enough
    said = check(replace(context([10, 4]), workload=WORKLOADS["flux"]))
    assert said is not None
    assert "left out 30.0%" in said
    assert "at least 70% is expected" in said


def test_work_is_counted_by_call_of_the_denoiser() -> None:
    with CATALOGUE["fp32"].applied(WORKLOAD, CPU) as pipeline:
        with linear_work(pipeline) as work:
            WORKLOAD.draw(pipeline, steps=2)
        counted = list(work)
        WORKLOAD.draw(pipeline, steps=1)
    assert len(counted) == 4
    assert len(set(counted)) == 1
    # The transformer has 6.2 million weights and 96 tokens; norms' projections see one token.
    assert 200e6 < counted[0] < 96 * 6.3e6
    assert work == counted
