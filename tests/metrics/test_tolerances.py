"""Tolerances fit together, an error that all scenarios share, and a user's own tolerances."""

from __future__ import annotations

import math

import pytest

from fixtures.metrics.case import YOURS
from fixtures.metrics.counts import HOST
from fixtures.metrics.latency_tolerances import CONTROL_TOLERANCE, FP32_TOLERANCE, RATIO_TOLERANCE
from fixtures.metrics.latency_verdicts import judge_latency
from fixtures.metrics.limits import Tolerance
from fixtures.metrics.statistics import MAX_SAMPLES, REGRESSION_ERROR, RUN_ERROR, regression_error
from fixtures.records.counts import SYNCHRONIZE, Counts, Row
from fixtures.records.outcome import Outcome
from fixtures.records.run import WHOLE
from tests.metrics.cases import ELSEWHERE, case, judged_peak, timed
from tests.support.counting import host_calls
from tests.support.runs import entry, scenario_record, timing


@pytest.mark.parametrize("tolerance", [RATIO_TOLERANCE, FP32_TOLERANCE, CONTROL_TOLERANCE])
def test_every_tolerance_is_wider_elsewhere(tolerance: Tolerance) -> None:
    assert 0 < tolerance.margin.regression <= tolerance.margin.pass_bound
    assert tolerance.margin.pass_bound < tolerance.elsewhere


@pytest.mark.parametrize("comparisons", [0, 1, 10, 11, 16, 300])
def test_neither_a_scenario_nor_a_run_errs_more_often_than_stated(comparisons: int) -> None:
    each = regression_error(comparisons) * MAX_SAMPLES
    assert each <= REGRESSION_ERROR * (1 + 1e-12)
    assert each * comparisons <= RUN_ERROR * (1 + 1e-12)
    assert each == pytest.approx(min(REGRESSION_ERROR, RUN_ERROR / max(1, comparisons)))


def test_samples_that_take_little_of_the_error_away_are_worth_few() -> None:
    at_once, some, whole = (regression_error(1, shrinks) for shrinks in (0.0, 0.2, 1.24))
    assert at_once == REGRESSION_ERROR
    assert whole == regression_error(1) == regression_error(1, math.nan) < some < at_once


# Of one's own


@pytest.mark.parametrize(
    ("share", "more", "outcome"),
    [
        (0.10, 0.10, Outcome.PASS),
        (0.10, 0.11, Outcome.REGRESSION),
        (0.0, 0.0, Outcome.PASS),
        (0.0, 1e-7, Outcome.REGRESSION),
    ],
)
def test_a_tolerance_takes_the_place_of_the_suite_s(
    share: float, more: float, outcome: Outcome
) -> None:
    peak = case(
        own_tolerances={"peak_memory": share}, entry=entry(component_peak_bytes={WHOLE: 10**9})
    )
    verdict = judged_peak(peak, {WHOLE: round(10**9 * (1 + more))}, "allocator")
    assert verdict.outcome is outcome
    assert f"{YOURS})" in verdict.sentence


def waiting(a_step: int, waits: int) -> Counts:
    """With so many calls in each step, and so many waits in the call."""
    return host_calls(a_step=a_step).beside(
        Counts.of({Row(SYNCHRONIZE): waits}, python="3.11", host_steps=3)
    )


@pytest.mark.parametrize(("calls", "waits", "fails"), [(660, 100, 0), (661, 100, 1), (660, 101, 1)])
def test_host_calls_are_held_to_the_tolerance_and_the_runtime_exactly(
    calls: int, waits: int, fails: bool
) -> None:
    on = case(own_tolerances={"host_calls": 0.10}, entry=entry(counts=waiting(600, 100)))
    [verdict] = HOST.judge(on, scenario_record("fp16", counts=waiting(calls, waits)))
    assert verdict.outcome is (Outcome.REGRESSION if fails else Outcome.PASS)
    assert (f"(limit 10 %{YOURS})" in verdict.sentence) == fails


@pytest.mark.parametrize("steady", [False, True])
def test_latency_is_held_to_the_tolerance_on_every_clock(steady: bool) -> None:
    slower = [timing(1.1, judged_ms=110.0)] * 12
    wide, suite = (
        judge_latency(case(own_tolerances=own, steady_clock=steady), slower)
        for own in ({"latency": 0.15}, {})
    )
    assert {verdict.outcome for verdict in wide} == {Outcome.PASS}
    assert Outcome.REGRESSION in {verdict.outcome for verdict in suite}
    assert [YOURS in verdict.sentence for verdict in wide] == [True] * (1 + steady)


def test_a_pass_rules_out_half_as_much_again_as_the_tolerance() -> None:
    certain = timed([1.0] * 60)
    for share, loss, outcome in ((0.08, 0.075, Outcome.PASS), (0.02, 0.015, Outcome.INCONCLUSIVE)):
        on = case(entry=certain, own_tolerances={"latency": share})
        (ratio,) = judge_latency(on, [timing(1 + loss)])
        assert ratio.outcome is outcome
        assert ratio.limit == pytest.approx(1 + share)


@pytest.mark.parametrize(("share", "limit", "whose"), [(0.15, 1.40, ""), (0.50, 1.50, YOURS)])
def test_elsewhere_only_a_wider_tolerance_is_ones_own(
    share: float, limit: float, whose: str
) -> None:
    on = case(entry=timed([1.0] * 60), own_tolerances={"latency": share}, hardware=ELSEWHERE)
    (ratio,) = judge_latency(on, [timing()])
    assert ratio.limit == pytest.approx(limit)
    assert f"{whose}, by other processors" in ratio.sentence
    assert ("yours" in ratio.sentence) == bool(whose)
