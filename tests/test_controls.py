"""Negative controls fall below every min_ssim; harmless variation stays above."""

from __future__ import annotations

import pytest

from fixtures.calibration import (
    HIGHEST,
    PROMPTS,
    draw_all,
    highest_controls,
    suggested_min_ssim,
)
from fixtures.controls import DOES_NOT_SEPARATE
from fixtures.devices.cpu import CpuDevice
from fixtures.scenarios import Scenario
from fixtures.techniques import CATALOGUE
from fixtures.workloads import WORKLOADS

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
WORKLOAD = WORKLOADS["storybook"]
STRICTEST = max(t.min_ssim(WORKLOAD.name) for t in CATALOGUE if t.id != "fp32")
LAXEST = min(t.min_ssim(WORKLOAD.name) for t in CATALOGUE if "single" in t.kinds)


@pytest.fixture(scope="module")
def likeness() -> dict[str, float]:
    """Highest SSIM of each control with the fp32 picture over three prompts."""
    device = CpuDevice()
    reference = Scenario(WORKLOAD, CATALOGUE["fp32"])
    calls = [{"prompt": prompt, "seed": 0} for prompt in PROMPTS[:3]]
    wanted = draw_all(reference, device, calls)
    return highest_controls(reference, device, calls, wanted)


def test_the_controls_are_these(likeness: dict[str, float]) -> None:
    assert tuple(likeness) == NAMES
    assert DOES_NOT_SEPARATE["storybook"] < set(NAMES)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in DOES_NOT_SEPARATE["storybook"]])
def test_a_wrong_picture_is_refused_by_every_technique_s_min_ssim(
    name: str, likeness: dict[str, float]
) -> None:
    assert likeness[name] < LAXEST


@pytest.mark.parametrize("name", sorted(DOES_NOT_SEPARATE["storybook"]))
def test_a_control_that_is_set_aside_really_does_not_separate(
    name: str, likeness: dict[str, float]
) -> None:
    assert likeness[name] > LAXEST, "it separates by now: use it"
    assert STRICTEST <= HIGHEST


@pytest.mark.parametrize(
    ("lowest", "follows"), [(1.0, 0.99), (0.999, 0.99), (0.99, 0.97), (0.95, 0.85)]
)
def test_min_ssim_follows_from_the_largest_harmless_deviation(
    lowest: float, follows: float
) -> None:
    assert suggested_min_ssim(lowest) == pytest.approx(follows, abs=0.0101)
    assert suggested_min_ssim(lowest) <= lowest
