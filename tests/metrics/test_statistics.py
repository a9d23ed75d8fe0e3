"""Shifts and their bounds: exact cases, wide input, and simulated processes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.metrics.statistics import (
    MIN_PROCESS_DEVIATION,
    NO_PRIOR,
    Priors,
    Spread,
    between_process_deviation,
    shift_of,
    speedup_interval,
    spread_of,
)
from fixtures.records.timing import Sample

WIDE = settings(max_examples=60, deadline=None, derandomize=True, database=None)
LOGS = st.floats(min_value=-5, max_value=5)
SAMPLES = st.lists(st.builds(Sample, LOGS, st.floats(0, 1)), min_size=1, max_size=6)


def test_the_deviation_between_processes_has_a_minimum() -> None:
    assert between_process_deviation([]) == MIN_PROCESS_DEVIATION
    assert between_process_deviation([0.3]) == MIN_PROCESS_DEVIATION
    assert between_process_deviation([0.3] * 5) == MIN_PROCESS_DEVIATION
    assert between_process_deviation([0.0, 0.2]) == pytest.approx(0.2 / math.sqrt(2))


def test_an_empty_side_is_refused() -> None:
    some = [Sample(0.0, 0.0)]
    calls: tuple[Callable[[], object], ...] = (
        lambda: shift_of([], [[0.0]]),
        lambda: shift_of(some, [[]]),
        lambda: shift_of([]),
        lambda: speedup_interval([], some, NO_PRIOR, 0.05),
        lambda: speedup_interval(some, [], NO_PRIOR, 0.05),
    )
    for call in calls:
        with pytest.raises(ValueError, match="at least one sample of each side"):
            call()


@WIDE
@given(new=SAMPLES, baseline=st.lists(LOGS, min_size=1, max_size=8), by=st.floats(-2, 2))
def test_a_slowdown_of_every_sample_moves_the_shift_by_as_much_and_nothing_else(
    new: list[Sample], baseline: list[float], by: float
) -> None:
    before = shift_of(new, [baseline])
    slower = [Sample(sample.log_ratio + by, sample.standard_error) for sample in new]
    after = shift_of(slower, [baseline])
    assert after.shift == pytest.approx(before.shift + by, abs=1e-9)
    assert after.standard_error == pytest.approx(before.standard_error, rel=1e-6)


@WIDE
@given(new=SAMPLES, baseline=st.lists(LOGS, min_size=1, max_size=8), error=st.floats(1e-4, 0.4))
def test_bounds_enclose_the_shift_and_a_rarer_error_widens_them(
    new: list[Sample], baseline: list[float], error: float
) -> None:
    shift = shift_of(new, [baseline])
    assert shift.lower_bound(error) < shift.shift < shift.upper_bound(error)
    assert shift.lower_bound(error / 2) < shift.lower_bound(error)
    assert shift.upper_bound(error / 2) > shift.upper_bound(error)


@pytest.mark.parametrize("processes", [1, 2, 4])
def test_a_bound_is_wrong_as_often_as_stated(processes: int) -> None:
    """4,000 unchanged comparisons with five baseline processes, within 3.5 standard errors."""
    generator = np.random.default_rng(processes)
    deviation, runs = 0.05, 4000
    wrong = dict.fromkeys((0.005, 0.05), 0)
    for _ in range(runs):
        new = [Sample(value, 0.0) for value in generator.normal(0, deviation, processes)]
        shift = shift_of(new, [list(generator.normal(0, deviation, 5))])
        for error in wrong:
            wrong[error] += shift.lower_bound(error) > 0
    for error, count in wrong.items():
        assert count / runs == pytest.approx(error, abs=3.5 * math.sqrt(error / runs))


@WIDE
@given(reference=SAMPLES, candidate=SAMPLES)
def test_a_speed_up_is_the_ratio_of_both_ratios_whichever_comes_first(
    reference: list[Sample], candidate: list[Sample]
) -> None:
    speedup = speedup_interval(reference, candidate, NO_PRIOR, 0.05)
    slow, fast = shift_of(reference), shift_of(candidate)
    assert speedup.estimate == pytest.approx(math.exp(slow.shift - fast.shift))
    assert speedup.low < speedup.estimate < speedup.high
    back = speedup_interval(candidate, reference, NO_PRIOR, 0.05).inverse()
    assert (back.low, back.estimate, back.high) == pytest.approx(
        (speedup.low, speedup.estimate, speedup.high)
    )


# What other scenarios say of a spread


def test_one_wild_scenario_says_little_of_another_one() -> None:
    generator = np.random.default_rng(0)
    others = [list(generator.normal(0, 0.02, 10)) for _ in range(50)]
    wild = list(generator.normal(0, 1.0, 10))
    assert spread_of([*others, wild]).deviation == pytest.approx(0.02, rel=0.05)


@pytest.mark.parametrize("scenarios", [[], [[0.1, 0.2]] * 2, [[0.1]] * 9, [[0.1, 0.1]] * 9])
def test_of_too_few_spreads_nothing_is_said(scenarios: list[list[float]]) -> None:
    assert spread_of(scenarios) == NO_PRIOR


@WIDE
@given(st.floats(0, 1), st.floats(0.1, 50), st.floats(0, 1), st.floats(0.1, 50))
def test_a_moderated_spread_lies_between_both_and_knows_what_both_know(
    mine: float, my_freedom: float, theirs: float, their_freedom: float
) -> None:
    moderated = Spread(mine, my_freedom).moderated_by(Spread(theirs, their_freedom))
    assert min(mine, theirs) - 1e-9 <= moderated.deviation <= max(mine, theirs) + 1e-9
    assert moderated.dof == my_freedom + their_freedom


# Both sides measured beside each other


@WIDE
@given(new=SAMPLES)
def test_a_shift_between_sides_is_the_mean_of_its_samples(new: list[Sample]) -> None:
    shift = shift_of(new)
    assert shift.shift == pytest.approx(np.mean([sample.log_ratio for sample in new]))
    assert shift.degrees_of_freedom == max(1, len(new) - 1)
    assert shift.standard_error >= MIN_PROCESS_DEVIATION / math.sqrt(len(new))


def test_a_sample_that_is_unsure_of_itself_widens_the_bounds_and_others_lend_their_spread() -> None:
    sure, unsure = (shift_of([Sample(0.0, error)] * 4) for error in (0.001, 0.05))
    assert unsure.standard_error > 2 * sure.standard_error
    samples = [Sample(0.03, 0.001)] * 2
    alone, moderated = shift_of(samples), shift_of(samples, priors=Priors(Spread(0.01, 40.0)))
    assert moderated.lower_bound(0.001) > alone.lower_bound(0.001)


# Sessions

CERTAIN_PRIORS = Priors(Spread(0.01, 1e9), Spread(0.02, 1e9))
"""Known so well that no figure changes them."""


@pytest.mark.parametrize("sessions", [1, 2, 4])
def test_no_process_makes_the_error_of_sessions_smaller_and_stored_sessions_do(
    sessions: int,
) -> None:
    stored = [[0.0] * 6] * sessions
    few, many = (shift_of([Sample(0.0, 0.0)] * n, stored, CERTAIN_PRIORS) for n in (1, 10_000))
    lasting = 0.02 * math.sqrt(1 + 1 / sessions)
    assert few.lasting_error == many.lasting_error == pytest.approx(lasting, rel=1e-3)
    of_stored = 0.01**2 / (6 * sessions)
    assert many.standard_error == pytest.approx(math.sqrt(lasting**2 + of_stored), rel=1e-3)
    assert few.standard_error > many.standard_error


def test_sessions_that_differ_by_more_than_is_documented_widen_the_error() -> None:
    priors = Priors(session=Spread(0.015, 20.0))
    calm, wild = (
        shift_of([Sample(0.0, 0.0)], [[by] * 6, [-by] * 6, [0.0] * 6], priors) for by in (0.01, 0.1)
    )
    assert wild.lasting_error > 2 * calm.lasting_error
    assert calm.shift == wild.shift == pytest.approx(0.0)


@WIDE
@given(new=SAMPLES, error=st.floats(1e-6, 0.4))
def test_a_bound_of_however_few_and_wild_processes_is_a_finite_factor(
    new: list[Sample], error: float
) -> None:
    factor = shift_of([Sample(100 * sample.log_ratio, sample.standard_error) for sample in new])
    assert all(math.isfinite(bound) for bound in dataclasses.astuple(factor.interval(error)))
