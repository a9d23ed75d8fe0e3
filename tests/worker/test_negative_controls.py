"""Negative controls, images that are wrong on purpose, fall below every min_ssim."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from fixtures.catalogue.matrix import scenarios
from fixtures.commands.calibrate import HIGHEST

CONTROLS: Mapping[str, float] = {
    "storybook": 0.948,
    "storybook-batch8": 0.940,
    "storybook-256": 0.851,
    "storybook-dit": 0.817,
}
"""By workload the highest SSIM of those that its images tell from harmless variation, of twelve
images each (docs/images.md)."""


@pytest.mark.parametrize("workload", CONTROLS)
def test_every_min_ssim_lies_above_the_controls_and_none_is_stricter_than_can_follow(
    workload: str,
) -> None:
    techniques = [each.technique for each in scenarios([workload]) if not each.is_reference]
    limits = [technique.min_ssim_on(workload) for technique in techniques]
    assert CONTROLS[workload] < min(limits) <= max(limits) <= HIGHEST
