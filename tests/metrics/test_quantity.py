"""Metrics: which direction is worse, and how figures and changes are printed."""

from __future__ import annotations

import pytest

from fixtures.metrics.counts import COUNTS as EXACT
from fixtures.metrics.images import FLIP, SSIM
from fixtures.metrics.latency_verdicts import LATENCY, RATIO
from fixtures.metrics.peak_memory import PEAK_MEMORY
from fixtures.metrics.quantity import Quantity
from fixtures.records.units import GIB, MIB

COUNTS = EXACT.quantity


HIGHER_IS_WORSE = (LATENCY, RATIO, PEAK_MEMORY, COUNTS, FLIP)


@pytest.mark.parametrize(
    ("metric", "sign"), [*((metric, 1) for metric in HIGHER_IS_WORSE), (SSIM, -1)]
)
def test_more_is_worse_of_everything_but_similarity(metric: Quantity, sign: int) -> None:
    assert metric.is_worse(2 * sign, than=sign)
    assert not metric.is_worse(sign, than=sign)
    assert not metric.is_worse(sign, than=2 * sign)


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        (PEAK_MEMORY, GIB - MIB, "1023.00 MiB"),
        (PEAK_MEMORY, GIB, "1.00 GiB"),
        (PEAK_MEMORY, -2 * GIB, "-2.00 GiB"),
        (LATENCY, 999.4, "999 ms"),
        (LATENCY, 1000, "1.00 s"),
        (RATIO, 1.02, "x1.020"),
        (SSIM, 0.98765, "0.9877"),
        (COUNTS, 1234567, "1,234,567"),
    ],
)
def test_a_figure_is_printed_with_its_unit(metric: Quantity, value: float, text: str) -> None:
    assert metric.format(value) == text


@pytest.mark.parametrize(
    ("value", "baseline", "text"),
    [
        (104.1, 100, "+4.1 %"),
        (50, 100, "-50.0 %"),
        (100, 100, "+0.0 %"),
        (100_001, 100_000, "+0.001 %"),
        (10_000_001, 10_000_000, "+<0.001 %"),
        (9_999_999, 10_000_000, "-<0.001 %"),
        (5, 0, "from zero"),
        (0, 0, "+0.0 %"),
    ],
)
def test_a_change_is_printed_so_that_the_smallest_one_shows(
    value: float, baseline: float, text: str
) -> None:
    assert COUNTS.change(value, baseline) == text
