"""What processes measured: paired ratios, their median, and intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.records.timing import Group, Sample, Timing
from tests.support.runs import timing

WIDE = settings(max_examples=60, deadline=None, derandomize=True, database=None)
SECONDS = st.floats(min_value=1e-6, max_value=1e6)


def test_each_candidate_is_compared_with_the_geometric_mean_of_its_neighbours() -> None:
    group = Group((1.0, 4.0, 4.0), (2.0, 8.0))
    assert group.log_ratios() == pytest.approx([0.0, math.log(2)])
    on_one_core = Group((1.0, 2.0), (2.0, 8.0))
    assert on_one_core.log_ratios() == pytest.approx([math.log(2), math.log(4)])


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


@pytest.mark.parametrize("bad", [0.0, -1.0, 1e-308, 1e308, math.nan, math.inf])
def test_a_round_of_no_length_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="finite time above zero"):
        Group((1.0, bad), (1.0,))
    with pytest.raises(ValueError, match="finite time above zero"):
        Group((1.0, 1.0), (bad,))


@pytest.mark.parametrize("candidates", [0, 3])
def test_a_group_has_as_many_reference_rounds_as_candidate_rounds_or_one_more(
    candidates: int,
) -> None:
    with pytest.raises(ValueError, match="a reference round beside it, or one on both"):
        Group((1.0, 1.0), (1.0,) * candidates)


def test_a_sample_is_the_median_so_one_disturbed_round_does_not_move_it() -> None:
    calm = Sample.of([math.log(1.5)] * 5)
    disturbed = Sample.of([math.log(ratio) for ratio in (1.5, 1.5, 90.0, 1.5, 1.5)])
    assert disturbed.log_ratio == calm.log_ratio == pytest.approx(math.log(1.5))
    assert calm.standard_error == 0


def test_the_standard_error_of_a_sample_is_that_of_a_median() -> None:
    generator = np.random.default_rng(0)
    samples = [Sample.of(list(generator.normal(0, 0.05, 200))) for _ in range(200)]
    spread = float(np.std([sample.log_ratio for sample in samples], ddof=1))
    stated = float(np.mean([sample.standard_error for sample in samples]))
    assert stated == pytest.approx(spread, rel=0.15)


def test_a_timing_gives_milliseconds() -> None:
    groups = (Group((1.0, 1.0, 1.0), (2.0, 8.0)), Group((1.0, 1.0), (4.0,)))
    taken = Timing(groups, (0.1, 0.5, 0.2), "")
    assert taken.judged_ms == pytest.approx(4000.0)
    assert taken.wall_ms == 200.0
    assert timing(1.25).sample.log_ratio == pytest.approx(math.log(1.25))
