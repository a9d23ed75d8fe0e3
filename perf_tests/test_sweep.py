"""A technique with other settings (--perf-sweep): measured beside the judged ones, for a chart."""

import pytest

from fixtures.devices import Device
from fixtures.metrics.images import SSIM
from fixtures.scenarios import Scenario
from fixtures.suite.judging import Judge
from fixtures.suite.measurements import Measurements
from fixtures.verdicts.case import Case

pytestmark = [pytest.mark.sweep, pytest.mark.last]


def test_sweep(
    scenario: Scenario,
    device: Device,
    case: Case,
    measurements: Measurements,
    no_latency: str | None,
    judge: Judge,
) -> None:
    """What it costs and what it keeps; which setting is right is for its reader to say."""
    measurements.observed(scenario)
    if not scenario.no_images(device):
        measurements.drawn(scenario)
    if not no_latency and not scenario.technique.untimed(device):
        measurements.timed(scenario)
    judge(case.not_judged(SSIM, "a sweep measures, and judges nothing"))
