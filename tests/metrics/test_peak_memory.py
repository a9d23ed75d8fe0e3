"""Peak memory: the limits of each source, every component, and what cannot be a peak."""

from __future__ import annotations

import math
from typing import Any

import pytest

from fixtures.metrics.peak_memory import judge_peak_memory
from fixtures.records.outcome import Outcome, Verdict
from fixtures.records.units import MemorySource
from tests.metrics.cases import case
from tests.support.runs import MIB, entry


def judged(
    whole: float = 512 * MIB, *, source: MemorySource = "ledger", allowed: float = 0, **others: Any
) -> Verdict:
    """A verdict on the case's peaks with some components replaced."""
    peaks: Any = {"whole": whole, "denoiser": 500 * MIB, **others}
    return judge_peak_memory(case(), peaks, source, allowed)


@pytest.mark.parametrize(
    ("source", "margin"),
    [("replay", 0), ("ledger", 536_870), ("profiler", 536_870), ("allocator", 5_368_709)],
)
def test_a_peak_at_the_limit_passes_and_one_byte_more_fails(
    source: MemorySource, margin: int
) -> None:
    highest, lowest = 512 * MIB + margin, 512 * MIB - margin
    assert judged(highest, source=source).outcome is Outcome.PASS
    assert judged(highest + 1, source=source).outcome is Outcome.REGRESSION
    assert judged(lowest, source=source).outcome is Outcome.PASS
    assert judged(lowest - 1, source=source).outcome is Outcome.IMPROVEMENT


@pytest.mark.parametrize(
    ("source", "minimum"), [("replay", 0), ("ledger", 1024), ("profiler", 1024), ("allocator", MIB)]
)
def test_a_small_peak_may_differ_by_a_minimum_of_bytes(source: MemorySource, minimum: int) -> None:
    small = case(entry=entry(component_peak_bytes={"whole": 2000}))
    at_limit = judge_peak_memory(small, {"whole": 2000 + minimum}, source)
    above = judge_peak_memory(small, {"whole": 2001 + minimum}, source)
    assert (at_limit.outcome, above.outcome) == (Outcome.PASS, Outcome.REGRESSION)


def test_what_is_allowed_widens_the_limit_of_exact_peaks() -> None:
    peak = 1000 * MIB
    exact = case(entry=entry(component_peak_bytes={"whole": peak}))
    for measured, outcome in (
        (peak + 50 * MIB, Outcome.PASS),
        (peak + 50 * MIB + 1, Outcome.REGRESSION),
        (peak - 50 * MIB, Outcome.PASS),
        (peak - 50 * MIB - 1, Outcome.IMPROVEMENT),
    ):
        verdict = judge_peak_memory(exact, {"whole": measured}, "replay", 50 * MIB)
        assert verdict.outcome is outcome


def test_a_component_that_needs_more_is_seen_behind_an_unchanged_whole() -> None:
    verdict = judged(denoiser=510 * MIB)
    assert verdict.outcome is Outcome.REGRESSION
    assert "peak memory (denoiser)" in verdict.sentence


def test_a_component_that_was_not_measured_is_a_regression() -> None:
    verdict = judge_peak_memory(case(), {"whole": 512 * MIB}, "ledger")
    assert verdict.outcome is Outcome.REGRESSION
    assert "'denoiser' was not measured" in verdict.sentence


def test_a_new_component_has_no_baseline() -> None:
    verdict = judged(vae=MIB)
    assert verdict.outcome is Outcome.NO_BASELINE
    assert "'vae' has no baseline" in verdict.sentence


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.0, -1.0])
def test_an_impossible_peak_is_broken(value: float) -> None:
    assert judged(value).outcome is Outcome.BROKEN
    assert judged(denoiser=value).outcome is Outcome.BROKEN
