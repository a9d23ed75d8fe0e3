"""Halving: it finds the first bad one, and within its bound."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.commands.bisect.steps import NothingFoundError, StepOutcome, first_bad


class Places:
    """Places that are bad from one on; remembers what was tested."""

    def __init__(self, bad_from: int, skipped: frozenset[int] = frozenset()) -> None:
        self.bad_from = bad_from
        self.skipped = skipped
        self.tested: list[int] = []

    def test(self, place: int) -> StepOutcome:
        self.tested.append(place)
        if place in self.skipped:
            return StepOutcome.SKIPPED
        return StepOutcome.BAD if place >= self.bad_from else StepOutcome.GOOD


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 400).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n - 1))))
def test_the_first_bad_one_is_found_within_the_bound(case: tuple[int, int]) -> None:
    count, bad_from = case
    places = Places(bad_from)
    assert first_bad(count, places.test) == (bad_from - 1, bad_from)
    # One more is the good one, which everything is compared with.
    assert len(places.tested) + 1 <= math.ceil(math.log2(count)) + 1
    assert len(set(places.tested)) == len(places.tested)
    assert 0 not in places.tested


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 400))
def test_the_last_one_is_tested_where_nothing_else_is_bad(count: int) -> None:
    places = Places(count)
    with pytest.raises(NothingFoundError, match="as good as the first"):
        first_bad(count, places.test)
    assert places.tested[-1] == count - 1
    assert len(places.tested) + 1 <= math.ceil(math.log2(count)) + 1


@settings(max_examples=40, deadline=None)
@given(
    st.integers(3, 60).flatmap(
        lambda n: st.tuples(
            st.just(n), st.integers(1, n - 1), st.frozensets(st.integers(1, n - 2), max_size=8)
        )
    )
)
def test_what_cannot_be_tested_is_passed_by(case: tuple[int, int, frozenset[int]]) -> None:
    count, bad_from, skipped = case
    places = Places(bad_from, skipped)
    last_good, bad = first_bad(count, places.test)
    assert last_good < bad_from <= bad
    assert set(range(last_good + 1, bad)) <= skipped
    assert not {last_good, bad} & skipped


def test_an_untestable_last_one_is_no_find() -> None:
    places = Places(9, frozenset({9}))
    with pytest.raises(NothingFoundError, match="cannot be tested"):
        first_bad(10, places.test)
