"""Latency: limits, what never passes, what cannot be compared, and what is left undecided."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.metrics.case import Case
from fixtures.metrics.latency_tolerances import (
    FP32_ELSEWHERE,
    FP32_TOLERANCE,
    RATIO_TOLERANCE,
    SIDE_BY_SIDE,
    TECHNIQUES_ELSEWHERE,
)
from fixtures.metrics.latency_verdicts import (
    LATENCY,
    RATIO,
    judge_change,
    judge_latency,
    judge_ratio,
    judge_time,
)
from fixtures.metrics.limits import Tolerance
from fixtures.metrics.statistics import MAX_SAMPLES, Priors, Spread
from fixtures.records.outcome import Outcome, Verdict
from fixtures.records.timing import Sample, Timing
from tests.metrics.cases import ELSEWHERE, OTHER_SETS, SCENARIO, case, side_case, timed
from tests.support.runs import entry, latency, sample, timing

WIDE = settings(max_examples=200, deadline=None, derandomize=True, database=None)
MARGIN = SIDE_BY_SIDE
CERTAIN = timed((1.0,) * 60)
"""Of so many equal processes that the baseline itself leaves no doubt."""
SIDES = side_case()


def taking(judged_ms: float) -> Timing:
    """A process of this latency, which may be impossible: a group of rounds would refuse that."""
    made = timing()
    object.__setattr__(made.groups[0], "candidate_s", (judged_ms / 1000,) * 3)
    return made


def judged(
    ratio: float, *, processes: int = 1, on: Case | None = None, standard_error: float = 0.001
) -> Verdict:
    samples = [sample(ratio, standard_error)] * processes
    return judge_ratio(on or case(), samples)


# The ratio to the reference


@pytest.mark.parametrize(
    ("ratio", "outcome"),
    [
        (1 + MARGIN.regression - 1e-3, Outcome.PASS),
        (1 + MARGIN.regression + 1e-3, Outcome.REGRESSION),
        (1 / (1 + MARGIN.regression - 1e-3), Outcome.PASS),
        (1 / (1 + MARGIN.regression + 1e-3), Outcome.IMPROVEMENT),
    ],
)
def test_a_certain_change_is_judged_by_the_margin(ratio: float, outcome: Outcome) -> None:
    assert judged(ratio, processes=12, on=case(entry=CERTAIN)).outcome is outcome
    assert judge_change(SIDES, [sample(ratio)] * 12).outcome is outcome


def test_the_more_scenarios_a_run_judges_the_surer_a_regression_must_be() -> None:
    alone, among_many = (
        judged(1.04, on=case(entry=CERTAIN, comparisons=count)) for count in (1, 1000)
    )
    assert (alone.outcome, among_many.outcome) == (Outcome.REGRESSION, Outcome.INCONCLUSIVE)


@pytest.mark.parametrize("processes", [1, 2, MAX_SAMPLES])
def test_huge_noise_is_inconclusive_and_never_a_pass(processes: int) -> None:
    noisy = case(entry=timed((0.6, 0.8, 1.0, 1.25, 1.67)))
    between = judged(1.0, processes=processes, on=noisy)
    within = judged(1.0, processes=processes, standard_error=0.5)
    assert between.outcome is within.outcome is Outcome.INCONCLUSIVE
    assert "a slowdown of up to" in between.sentence
    assert "% cannot be ruled out" in between.sentence


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_ratio_that_is_not_a_number_is_broken(value: float) -> None:
    samples = [sample(1.0), Sample(value, 0.01)]
    assert judge_ratio(case(), samples).outcome is Outcome.BROKEN
    assert judge_change(SIDES, samples).outcome is Outcome.BROKEN


@pytest.mark.parametrize("error", [math.nan, math.inf])
def test_a_ratio_of_unknown_uncertainty_does_not_pass(error: float) -> None:
    samples = [Sample(0.0, error)]
    for verdict in (judge_ratio(case(), samples), judge_change(SIDES, samples)):
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert "a slowdown of up to" in verdict.sentence


# Sessions and kinds of processor


@pytest.mark.parametrize(
    ("tolerance", "most"),
    [(FP32_TOLERANCE, FP32_ELSEWHERE), (RATIO_TOLERANCE, TECHNIQUES_ELSEWHERE)],
)
def test_on_a_processor_without_samples_a_loss_must_certainly_exceed_what_kinds_differ_by(
    tolerance: Tolerance, most: float
) -> None:
    on = case(entry=CERTAIN, hardware=ELSEWHERE, tolerance=tolerance)
    for loss, outcome in (
        (0.9 * most, Outcome.PASS),
        (most + 0.01, Outcome.INCONCLUSIVE),
        (1.3 * most, Outcome.REGRESSION),
        (1 / (1 + 1.3 * most) - 1, Outcome.IMPROVEMENT),
    ):
        verdict = judged(1 + loss, processes=12, on=on)
        assert verdict.outcome is outcome, loss
        assert verdict.limit == pytest.approx(1 + most)
        assert ", by other processors" in verdict.sentence
        finer = "nox -s refresh` on this machine" in verdict.sentence
        assert finer == ("nox -s compare`" in verdict.sentence) == (outcome is not Outcome.PASS)
        assert verdict.detail.endswith(", by other processors)")


def test_on_a_processor_without_samples_the_baseline_is_the_mean_over_kinds() -> None:
    ratios = ((1.0, 1.0), (1.3,), (0.8,))
    sessions = [
        latency((ratio,) * 6, hardware={"processor": number})
        for number, of_kind in enumerate(ratios)
        for ratio in of_kind
    ]
    verdict = judged(1.0, processes=12, on=case(entry=entry(latency=tuple(sessions))))
    assert verdict.baseline == pytest.approx((1.0 * 1.3 * 0.8) ** (1 / 3))


def test_a_kind_with_sessions_of_its_own_is_judged_by_no_other() -> None:
    other = latency((2.0,) * 60, hardware=ELSEWHERE)
    stored = replace(CERTAIN, latency=(*CERTAIN.latency, other))
    on = case(entry=stored)
    assert judged(1.05, processes=12, on=on) == judged(1.05, processes=12, on=case(entry=CERTAIN))
    mine = case(entry=stored, hardware=ELSEWHERE)
    assert judged(2.0, processes=12, on=mine).outcome is Outcome.PASS
    assert judged(1.0, processes=12, on=mine).outcome is Outcome.IMPROVEMENT


def limit(on: Case) -> float:
    """The loss, as a share, that twelve processes are held to."""
    verdict = judged(1.0, processes=12, on=on)
    assert verdict.limit is not None
    assert verdict.baseline is not None
    return verdict.limit / verdict.baseline - 1


def test_more_sessions_narrow_the_limit_until_it_is_what_matters() -> None:
    def of(sessions: int, deviation: float = 0.015) -> Case:
        stored = entry(latency=(CERTAIN.latency[0],) * sessions)
        priors = Priors(session=Spread(deviation, 20.0))
        return case(entry=stored, tolerance=RATIO_TOLERANCE, priors=priors)

    assert limit(of(1, 0.03)) > limit(of(2, 0.03)) > limit(of(4, 0.03))
    assert limit(of(1)) > RATIO_TOLERANCE.margin.regression
    assert limit(of(4)) == pytest.approx(RATIO_TOLERANCE.margin.regression)


def test_the_interval_that_is_printed_is_the_one_that_decided() -> None:
    seen: set[Outcome] = set()

    @WIDE
    @given(
        ratio=st.floats(0.8, 1.25),
        session=st.floats(0.0, 0.03),
        spread=st.floats(0.0, 0.03),
        processes=st.integers(1, MAX_SAMPLES),
    )
    def check(ratio: float, session: float, spread: float, processes: int) -> None:
        stored = timed([math.exp(spread * step) for step in (-1, -0.5, 0, 0.5, 1)])
        priors = Priors(session=Spread(session, 20.0))
        verdict = judged(ratio, processes=processes, on=case(entry=stored, priors=priors))
        printed = re.search(r"\[([-+.\d]+), ([-+.\d]+) at ([.\d]+) %\]", verdict.sentence)
        assert printed, verdict.sentence
        low, high = (1 + float(bound) / 100 for bound in printed.groups()[:2])
        assert verdict.limit
        assert verdict.baseline
        most = verdict.limit / verdict.baseline
        seen.add(verdict.outcome)
        rounding = 6e-4
        if verdict.outcome is Outcome.REGRESSION:
            assert low >= 1 - rounding
            assert ratio > most * verdict.baseline
        elif verdict.outcome is Outcome.IMPROVEMENT:
            assert high <= 1 + rounding
        elif verdict.outcome is Outcome.PASS:
            assert high <= max(1 + MARGIN.pass_bound, most) + rounding
        else:
            assert f"slowdown of up to {high - 1:.1%}".replace("%", " %") in verdict.sentence

    check()
    assert len(seen) == 4


def test_half_precision_is_not_judged_on_other_instruction_sets() -> None:
    verdict = judged(9.0, on=case(hardware=OTHER_SETS, half_precision=True))
    assert verdict.outcome is Outcome.NOT_JUDGED
    assert verdict.sentence == f"{SCENARIO}: latency ratio is not judged: {verdict.detail}"
    assert verdict.detail.startswith("half precision depends on the processor's instruction sets")


def test_half_precision_that_was_not_timed_where_it_was_recorded_is_not_judged_elsewhere() -> None:
    """A processor with fp16 arithmetic times what the one of the baseline did not."""
    untimed = entry(latency=())
    elsewhere = case(entry=untimed, half_precision=True)
    assert outcomes(elsewhere, [timing()]) == [Outcome.NOT_JUDGED]
    assert outcomes(case(entry=untimed), [timing()]) == [Outcome.NO_BASELINE]


def test_a_ratio_of_another_call_is_no_baseline_and_says_of_which() -> None:
    stored = entry(latency=(latency(timing={"steps": 20}),))
    verdict = judged(1.0, on=case(entry=stored, timing={"steps": 3}))
    assert verdict.outcome is Outcome.NO_BASELINE
    assert "another call (steps 20; now steps 3)" in verdict.sentence
    assert "accept it with" in verdict.sentence
    unsaid = judged(1.0, on=case(timing={"steps": 3}))
    assert "(not stated; now steps 3)" in unsaid.sentence
    same = case(entry=stored, timing={"steps": 20})
    assert judged(1.0, processes=3, on=same).outcome is Outcome.PASS


# Head against base


def test_a_gain_of_note_must_be_ruled_out_too() -> None:
    samples = [sample(0.93), sample(0.95)]
    verdict = judge_change(SIDES, samples)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "a speed-up of up to" in verdict.sentence
    assert judge_ratio(case(), samples).outcome is not Outcome.INCONCLUSIVE


# The time itself, where the clock is steady


STEADY = case(entry=CERTAIN, steady_clock=True)


@pytest.mark.parametrize(
    ("judged_ms", "outcome"),
    [
        (100.0, Outcome.PASS),
        (100.0 * (1 + MARGIN.regression - 1e-3), Outcome.PASS),
        (100.0 * (1 + MARGIN.regression + 1e-3), Outcome.REGRESSION),
        (105.0, Outcome.REGRESSION),
        (100.0 / (1 + MARGIN.regression + 1e-3), Outcome.IMPROVEMENT),
    ],
)
def test_on_a_steady_clock_the_time_is_judged_by_the_spread_of_processes(
    judged_ms: float, outcome: Outcome
) -> None:
    timings = [timing(judged_ms=judged_ms)] * 12
    verdict = judge_time(STEADY, timings)
    assert verdict.outcome is outcome
    assert verdict.measured == pytest.approx(judged_ms)
    assert verdict.baseline == 100.0
    assert verdict.limit == pytest.approx(100.0 * (1 + MARGIN.regression))
    assert "12 processes" in verdict.sentence


@pytest.mark.parametrize("judged_ms", [math.nan, math.inf, -math.inf, 0.0, -1.0])
def test_an_impossible_latency_is_broken(judged_ms: float) -> None:
    assert judge_time(STEADY, [taking(judged_ms)]).outcome is Outcome.BROKEN


def test_a_steady_clock_on_other_hardware_is_not_judged() -> None:
    elsewhere = replace(STEADY, hardware=ELSEWHERE)
    verdict = judge_time(elsewhere, [timing()])
    assert verdict.outcome is Outcome.NOT_JUDGED
    assert "no session of this hardware" in verdict.sentence


# Both


def outcomes(on: Case, timings: Sequence[Timing]) -> list[Outcome]:
    return [verdict.outcome for verdict in judge_latency(on, timings)]


def test_a_latency_is_the_ratio_and_on_a_steady_clock_the_time_itself() -> None:
    assert [verdict.metric for verdict in judge_latency(case(), [taking(9999.0)])] == [RATIO.name]
    metrics = [verdict.metric for verdict in judge_latency(STEADY, [timing()])]
    assert metrics == [RATIO.name, LATENCY.name]
    timings = [timing(1.0, judged_ms=105.0)] * 12
    assert outcomes(STEADY, timings) == [Outcome.PASS, Outcome.REGRESSION]
    timings = [timing(1.05, judged_ms=100.0)] * 12
    assert outcomes(STEADY, timings) == [Outcome.REGRESSION, Outcome.PASS]
