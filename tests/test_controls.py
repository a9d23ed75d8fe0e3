"""Negative controls fall below every min_ssim; harmless variation stays above."""

from __future__ import annotations

from typing import Any

import pytest

from fixtures.calibration import HIGHEST, suggested_min_ssim
from fixtures.controls import DOES_NOT_SEPARATE, control_pictures
from fixtures.devices.cpu import CpuDevice
from fixtures.similarity import BrokenPictureError, Pictures, ssim
from fixtures.techniques import CATALOGUE
from fixtures.workloads import WORKLOADS

NAMES = (
    "other seed",
    "other prompt",
    "half the steps",
    "one step fewer",
    "black",
    "noise",
    "swapped channels",
)
WORKLOAD = WORKLOADS["storybook"]
STRICTEST = max(t.min_ssim(WORKLOAD.name) for t in CATALOGUE if t.id != "fp32")
LAXEST = min(t.min_ssim(WORKLOAD.name) for t in CATALOGUE if "single" in t.kinds)


@pytest.fixture(scope="module")
def likeness() -> dict[str, float]:
    """SSIM of each control with the fp32 picture; 0 where it is refused as no picture."""
    device = CpuDevice()
    with CATALOGUE["fp32"].applied(WORKLOAD, device) as pipeline:

        def draw(**changes: Any) -> Pictures:
            return WORKLOAD.draw(pipeline, **changes)

        reference = draw()
        found = {}
        for name, pictures in control_pictures(WORKLOAD, draw, reference).items():
            try:
                found[name] = ssim(pictures, reference)
            except BrokenPictureError:
                found[name] = 0.0
    return found


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
