"""Negative controls fall below every min_ssim; harmless variation stays above."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from fixtures.commands.calibrate import HIGHEST, PROMPTS
from fixtures.devices.cpu import CpuDevice
from fixtures.scenarios import scenarios
from tests.support.negative_controls import highest_controls

NAMES = (
    "other seed",
    "other prompt",
    "half the steps",
    "a quarter of the steps",
    "one step fewer",
    "wrong prediction type",
    "unscaled latents",
    "black",
    "noise",
    "swapped channels",
)
DOES_NOT_SEPARATE: Mapping[str, frozenset[str]] = {
    "storybook": frozenset({"half the steps", "one step fewer"}),
    "storybook-256": frozenset({"half the steps", "one step fewer", "unscaled latents"}),
    "storybook-dit": frozenset(
        {"half the steps", "a quarter of the steps", "one step fewer", "unscaled latents"}
    ),
}
"""By workload, those that its images do not tell from harmless variation; docs/images.md has the
figures."""
CALLS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "storybook": [{"prompt": prompt, "seed": 0} for prompt in PROMPTS[:3]],
    "storybook-batch8": [{"prompt": PROMPTS[0], "seed": 0}],
    # Of twelve images the one that half the steps come nearest to.
    "storybook-256": [{"prompt": PROMPTS[0], "seed": 1}],
    "storybook-dit": [{"prompt": prompt, "seed": 0} for prompt in PROMPTS[:3]],
}


def limits(workload: str) -> list[float]:
    """Every min_ssim that is in force on a workload, but for the reference's own."""
    matrix = scenarios([workload])
    return [each.technique.min_ssim_on(workload) for each in matrix if not each.is_reference]


def passing(workload: str, calls: Sequence[Mapping[str, Any]]) -> set[str]:
    """The controls of which some image is as similar to fp32's as the laxest limit asks for."""
    device = CpuDevice()
    reference = scenarios([workload])[0]
    assert reference.is_reference
    similarity = highest_controls(reference, device, calls)
    assert tuple(similarity) == NAMES
    assert [name for name, value in similarity.items() if value == 0.0] == ["black"], "no image"
    return {name for name, value in similarity.items() if value >= min(limits(workload))}


def test_a_wrong_image_is_refused_by_every_technique_s_min_ssim() -> None:
    assert passing("storybook", CALLS["storybook"][:1]) <= DOES_NOT_SEPARATE["storybook"]


@pytest.mark.long
@pytest.mark.parametrize("workload", CALLS)
def test_only_those_that_do_not_separate_are_not_refused_and_these_are_no_more_than_named(
    workload: str,
) -> None:
    assert passing(workload, CALLS[workload]) == DOES_NOT_SEPARATE.get(workload, frozenset())


@pytest.mark.parametrize("workload", CALLS)
def test_no_limit_is_stricter_than_the_highest_that_can_follow(workload: str) -> None:
    assert max(limits(workload)) <= HIGHEST
