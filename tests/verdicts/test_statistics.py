"""Paired ratios and their intervals: exact cases, wide input, and simulated processes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.statistics import (
    BETWEEN_PROCESS_FLOOR,
    NO_OTHERS,
    Group,
    Interval,
    Look,
    Spread,
    between_process_deviation,
    compare,
    ratio_interval,
    spread_of,
)

WIDE = settings(max_examples=60, deadline=None, derandomize=True, database=None)
SECONDS = st.floats(min_value=1e-6, max_value=1e6)
LOGS = st.floats(min_value=-5, max_value=5)
LOOKS = st.lists(st.builds(Look, LOGS, st.floats(0, 1)), min_size=1, max_size=6)


def test_each_candidate_is_held_against_the_geometric_mean_of_its_neighbours() -> None:
    group = Group((1.0, 4.0, 4.0), (2.0, 8.0))
    assert group.log_ratios() == pytest.approx([0.0, math.log(2)])


@WIDE
@given(
    factor=st.floats(0.1, 10), growth=st.floats(0.9, 1.1), start_s=SECONDS, pairs=st.integers(1, 8)
)
def test_a_steady_drift_cancels_exactly(
    factor: float, growth: float, start_s: float, pairs: int
) -> None:
    times = [start_s * growth**step for step in range(2 * pairs + 1)]
    group = Group(tuple(times[::2]), tuple(factor * t for t in times[1::2]))
    assert group.log_ratios() == pytest.approx([math.log(factor)] * pairs, abs=1e-9)


@WIDE
@given(st.lists(SECONDS, min_size=3, max_size=9).filter(lambda t: len(t) % 2), st.floats(0.01, 100))
def test_a_machine_twice_as_fast_sees_the_same_ratios(times: list[float], speed: float) -> None:
    here = Group(tuple(times[::2]), tuple(times[1::2]))
    there = Group(tuple(t * speed for t in times[::2]), tuple(t * speed for t in times[1::2]))
    assert there.log_ratios() == pytest.approx(here.log_ratios(), abs=1e-9)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_round_of_no_length_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="finite time above zero"):
        Group((1.0, bad), (1.0,))
    with pytest.raises(ValueError, match="finite time above zero"):
        Group((1.0, 1.0), (bad,))


@pytest.mark.parametrize("candidates", [0, 2, 3])
def test_a_group_has_one_reference_round_more_than_candidate_rounds(candidates: int) -> None:
    with pytest.raises(ValueError, match="one reference round more"):
        Group((1.0, 1.0), (1.0,) * candidates)


def test_a_look_is_the_median_so_one_disturbed_round_does_not_move_it() -> None:
    calm = Look.of([Group((1.0,) * 6, (1.5,) * 5)])
    disturbed = Look.of([Group((1.0,) * 6, (1.5, 1.5, 90.0, 1.5, 1.5))])
    assert disturbed.log_ratio == calm.log_ratio == pytest.approx(math.log(1.5))
    assert calm.standard_error == 0


def test_a_look_without_a_pair_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one pair"):
        Look.of([])


def test_the_standard_error_of_a_look_is_that_of_a_median() -> None:
    generator = np.random.default_rng(0)
    looks = [
        Look.of([Group((1.0,) * 201, tuple(np.exp(generator.normal(0, 0.05, 200))))])
        for _ in range(200)
    ]
    spread = float(np.std([look.log_ratio for look in looks], ddof=1))
    stated = float(np.mean([look.standard_error for look in looks]))
    assert stated == pytest.approx(spread, rel=0.15)


def test_the_deviation_between_processes_has_a_floor() -> None:
    assert between_process_deviation([]) == BETWEEN_PROCESS_FLOOR
    assert between_process_deviation([0.3]) == BETWEEN_PROCESS_FLOOR
    assert between_process_deviation([0.3] * 5) == BETWEEN_PROCESS_FLOOR
    assert between_process_deviation([0.0, 0.2]) == pytest.approx(0.2 / math.sqrt(2))


def test_an_empty_side_is_refused() -> None:
    with pytest.raises(ValueError, match="both sides"):
        compare([], [0.0])
    with pytest.raises(ValueError, match="both sides"):
        compare([Look(0.0, 0.0)], [])


@WIDE
@given(new=LOOKS, baseline=st.lists(LOGS, min_size=1, max_size=8), by=st.floats(-2, 2))
def test_a_slow_down_of_every_look_moves_the_shift_by_as_much_and_nothing_else(
    new: list[Look], baseline: list[float], by: float
) -> None:
    before = compare(new, baseline)
    after = compare([Look(look.log_ratio + by, look.standard_error) for look in new], baseline)
    assert after.shift == pytest.approx(before.shift + by, abs=1e-9)
    assert after.standard_error == pytest.approx(before.standard_error, rel=1e-6)


@WIDE
@given(new=LOOKS, baseline=st.lists(LOGS, min_size=1, max_size=8), error=st.floats(1e-4, 0.4))
def test_bounds_enclose_the_shift_and_a_rarer_error_widens_them(
    new: list[Look], baseline: list[float], error: float
) -> None:
    comparison = compare(new, baseline)
    assert comparison.lower_bound(error) < comparison.shift < comparison.upper_bound(error)
    assert comparison.lower_bound(error / 2) < comparison.lower_bound(error)
    assert comparison.upper_bound(error / 2) > comparison.upper_bound(error)


def test_the_interval_widens_with_the_new_looks_own_noise_and_with_their_disagreement() -> None:
    baseline = [-0.01, 0.0, 0.01, 0.0, 0.0]
    calm = compare([Look(0.0, 0.0)] * 3, baseline)
    noisy = compare([Look(0.0, 0.2)] * 3, baseline)
    divided = compare([Look(-0.3, 0.0), Look(0.0, 0.0), Look(0.3, 0.0)], baseline)
    assert calm.standard_error < noisy.standard_error
    assert calm.standard_error < divided.standard_error


@pytest.mark.parametrize("looks", [1, 2, 4])
def test_a_bound_is_wrong_as_often_as_stated(looks: int) -> None:
    """4,000 unchanged comparisons with five baseline processes: 0.5 % lie above the bound."""
    generator = np.random.default_rng(looks)
    deviation, error, runs = 0.05, 0.005, 4000
    wrong = 0
    for _ in range(runs):
        new = [Look(value, 0.0) for value in generator.normal(0, deviation, looks)]
        wrong += compare(new, list(generator.normal(0, deviation, 5))).lower_bound(error) > 0
    assert wrong / runs == pytest.approx(error, abs=4 * math.sqrt(error / runs))


def test_more_processes_narrow_the_interval() -> None:
    one, four = ratio_interval([Look(0.1, 0.02)]), ratio_interval([Look(0.1, 0.02)] * 4)
    assert one.estimate == four.estimate == pytest.approx(math.exp(0.1))
    assert one.low < four.low < four.estimate < four.high < one.high


@WIDE
@given(LOGS, st.floats(0, 2), st.floats(0, 2))
def test_a_speed_up_is_the_inverse_of_the_ratio_with_its_bounds_exchanged(
    centre: float, below: float, above: float
) -> None:
    interval = Interval(centre, centre - below, centre + above).exp()
    speedup = interval.inverse()
    assert speedup.low <= speedup.estimate * (1 + 1e-12)
    assert speedup.estimate <= speedup.high * (1 + 1e-12)
    assert speedup.estimate * interval.estimate == pytest.approx(1)


# What other scenarios say of a spread


def test_equal_spreads_of_many_scenarios_are_worth_the_most_degrees_of_freedom() -> None:
    generator = np.random.default_rng(0)
    spread = spread_of([list(generator.normal(0, 0.02, 10)) for _ in range(200)])
    assert spread.deviation == pytest.approx(0.02, rel=0.05)
    assert spread.freedom > 30


def test_spreads_that_differ_widely_are_worth_few() -> None:
    generator = np.random.default_rng(0)
    scales = np.exp(generator.normal(0, 1.0, 200)) * 0.02
    assert spread_of([list(generator.normal(0, scale, 10)) for scale in scales]).freedom < 5


@pytest.mark.parametrize("scenarios", [[], [[0.1, 0.2]] * 2, [[0.1]] * 9, [[0.1, 0.1]] * 9])
def test_of_too_few_spreads_nothing_is_said(scenarios: list[list[float]]) -> None:
    assert spread_of(scenarios) == NO_OTHERS


@WIDE
@given(st.floats(0, 1), st.floats(0.1, 50), st.floats(0, 1), st.floats(0.1, 50))
def test_a_moderated_spread_lies_between_both_and_knows_what_both_know(
    mine: float, my_freedom: float, theirs: float, their_freedom: float
) -> None:
    moderated = Spread(mine, my_freedom).moderated_by(Spread(theirs, their_freedom))
    assert min(mine, theirs) - 1e-9 <= moderated.deviation <= max(mine, theirs) + 1e-9
    assert moderated.freedom == my_freedom + their_freedom


def test_what_others_know_narrows_the_interval_of_a_few_processes() -> None:
    new, baseline = [Look(0.0, 0.0)], [-0.02, 0.0, 0.02]
    alone = compare(new, baseline)
    helped = compare(new, baseline, Spread(0.02, 40))
    assert helped.upper_bound(0.005) < alone.upper_bound(0.005)
    assert helped.shift == alone.shift


def test_a_look_less_certain_than_processes_differ_counts_with_its_own_uncertainty() -> None:
    baseline = [-0.02, 0.0, 0.02] * 4
    calm, unsure = (compare([Look(0.0, error)], baseline) for error in (0.001, 0.06))
    assert unsure.standard_error > calm.standard_error > 0
