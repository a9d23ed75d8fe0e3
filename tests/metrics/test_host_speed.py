"""A host that became slower or faster since the baseline: wider limits, and it says so."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.metrics.case import Case
from fixtures.metrics.latency_tolerances import FP32_TOLERANCE, MOST_FOR_HOST, RATIO_TOLERANCE
from fixtures.metrics.latency_verdicts import at_host_speed, judge_latency
from fixtures.metrics.limits import Tolerance
from fixtures.metrics.statistics import MAX_SAMPLES
from fixtures.records.outcome import Outcome, Verdict
from fixtures.records.timing import Timing
from tests.metrics.cases import ELSEWHERE, case
from tests.support.runs import entry, latency, timing

WIDE = settings(max_examples=300, deadline=None, derandomize=True, database=None)
RATIOS = (1.25, 1.26, 1.27, 1.28, 1.29, 1.28)
STORED = entry(latency=(latency(RATIOS, judged_ms=(105.0,) * 6),))
"""Its reference took 81 to 84 ms."""
TOLERANCES = [FP32_TOLERANCE, RATIO_TOLERANCE]


def judged(
    ratio: float, reference_ms: float, tolerance: Tolerance = FP32_TOLERANCE, **changes: Any
) -> Verdict:
    on: Case = case(entry=STORED, tolerance=tolerance, **changes)
    process: Timing = timing(ratio, judged_ms=ratio * reference_ms)
    (verdict,) = judge_latency(on, [process] * MAX_SAMPLES)
    return verdict


@pytest.mark.parametrize(
    ("tolerance", "ratio", "stored", "reference_ms"),
    [(FP32_TOLERANCE, 1.358, 1.272, 134.0), (RATIO_TOLERANCE, 1.342, 1.185, 134.0)],
)
def test_unchanged_code_passes_where_it_was_called_a_regression(
    tolerance: Tolerance, ratio: float, stored: float, reference_ms: float
) -> None:
    """Figures of hosts that had slowed, 2026-11-23; the reference had taken 79 to 93 ms."""
    ratios = tuple(stored * share for share in (0.99, 0.995, 1.0, 1.0, 1.005, 1.01))
    before_ms = (79.0, 83.0, 86.0, 88.0, 90.0, 93.0)
    times = tuple(r * ms for r, ms in zip(ratios, before_ms, strict=True))
    on = case(entry=entry(latency=(latency(ratios, judged_ms=times),)), tolerance=tolerance)
    process = timing(ratio, judged_ms=ratio * reference_ms)
    assert {verdict.outcome for verdict in judge_latency(on, [process] * 4)} == {Outcome.PASS}
    as_it_was = timing(ratio, judged_ms=ratio * 86.0)
    assert judge_latency(on, [as_it_was] * 4)[0].outcome is Outcome.REGRESSION


@pytest.mark.parametrize(
    ("reference_ms", "wider"), [(60.0, True), (75.0, False), (90.0, False), (130.0, True)]
)
def test_far_from_the_baselines_processes_the_limit_is_wider_and_the_sentence_says_why(
    reference_ms: float, wider: bool
) -> None:
    verdict = judged(2.0, reference_ms)
    why = f"wider, since the reference takes {reference_ms:.0f} ms"
    assert (why in verdict.sentence) is ("wider" in verdict.sentence) is wider
    assert ("took 81 to 84 when the baseline was recorded" in verdict.sentence) is wider
    assert verdict.baseline is not None
    assert (verdict.limit == pytest.approx(verdict.baseline * 1.04)) is not wider


@pytest.mark.parametrize("tolerance", TOLERANCES)
def test_limits_widen_with_the_distance_and_never_beyond_the_most(tolerance: Tolerance) -> None:
    margin = tolerance.margin

    @WIDE
    @given(st.floats(1.0, 100.0), st.floats(1.0, 2.0), st.booleans())
    def check(by: float, farther: float, slower: bool) -> None:
        near_ms, far_ms = (
            (84.0 * by, 84.0 * by * farther) if slower else (81.0 / by, 81.0 / by / farther)
        )
        near, far = (at_host_speed(margin, STORED.latency, [ms])[0] for ms in (near_ms, far_ms))
        assert margin.regression <= near.regression <= far.regression
        assert far.regression <= MOST_FOR_HOST
        assert margin.pass_bound <= near.pass_bound <= far.pass_bound
        assert far.pass_bound <= MOST_FOR_HOST
        assert near.regression <= near.pass_bound

    check()


def test_on_other_hardware_the_hosts_speed_changes_nothing() -> None:
    slow, fast = (judged(1.4, ms, hardware=ELSEWHERE) for ms in (30.0, 500.0))
    assert slow.limit == pytest.approx(fast.limit)
    assert "wider" not in slow.sentence + fast.sentence


@pytest.mark.parametrize("reference_ms", [math.nan, math.inf, 0.0, -1.0])
def test_a_reference_without_a_sound_time_widens_nothing(reference_ms: float) -> None:
    margin = RATIO_TOLERANCE.margin
    assert at_host_speed(margin, STORED.latency, [reference_ms]) == (margin, "")
