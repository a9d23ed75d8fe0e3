"""Shards: together they run everything once, and compared techniques stay in one of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.measuring.rounds import ROUNDS_S
from fixtures.records.counts import OPERATIONS
from fixtures.scenarios import groups_of, scenarios
from fixtures.suite.sharding import UNKNOWN_S, cost_s, shard
from tests.suite.test_judged import run
from tests.support.counting import counted
from tests.support.runs import entry, latency

FOUND = scenarios(["storybook", "storybook-256", "sd15"])
NAMES = groups_of(FOUND)
FEW = ("storybook-fp32", "storybook-tf32", "storybook-bf16", "storybook-256-fp32", "sd15-fp32")
"""Scenarios that are groups of their own."""
WIDE = settings(max_examples=40, deadline=None, derandomize=True, database=None)


@WIDE
@given(
    of=st.integers(1, 9),
    costs=st.lists(st.floats(0.1, 100), min_size=len(FOUND), max_size=len(FOUND)),
)
def test_every_scenario_is_in_one_shard_with_what_it_is_compared_with(
    of: int, costs: list[float]
) -> None:
    known = dict(zip((one.id for one in FOUND), costs, strict=True))
    parts = [
        shard(FOUND, lambda scenario: known[scenario.id], number, of) for number in range(1, of + 1)
    ]
    assert sorted(name for part in parts for name in part) == sorted(known)
    for part in parts:
        together = {NAMES[name] for name in part}
        assert part == {one.id for one in FOUND if NAMES[one.id] in together}


@pytest.mark.parametrize(
    ("costs", "fullest"),
    # The dearest comes last as they are found, and by name.
    [([3, 3, 2, 2, 2], 7), ([1, 1, 1, 1, 2], 3), ([1, 2, 1, 1, 1], 3)],
)
def test_the_dearest_goes_first_and_to_the_shard_that_has_least_to_do(
    costs: list[int], fullest: int
) -> None:
    """By which no shard costs more than 4/3 of the best split, as 7 against 6 is (Graham, 1969)."""
    known = dict(zip(FEW, costs, strict=True))
    few = [one for one in FOUND if one.id in FEW]
    parts = (shard(few, lambda scenario: known[scenario.id], number, 2) for number in (1, 2))
    assert max(sum(known[name] for name in part) for part in parts) == fullest


@pytest.mark.parametrize(("number", "of"), [(0, 2), (3, 2), (1, 0)])
def test_there_is_no_other_shard(number: int, of: int) -> None:
    with pytest.raises(ValueError, match="no shard"):
        shard(FOUND, lambda scenario: 1.0, number, of)


def test_a_slow_scenario_costs_more_and_an_unknown_one_something() -> None:
    assert cost_s(None) == UNKNOWN_S
    slow, fast = (cost_s(entry(latency=(latency(judged_ms=(ms,) * 5),))) for ms in (5000.0, 100.0))
    assert slow > fast > ROUNDS_S
    many, few, unknown = (
        cost_s(entry(latency=(), counts=counted(totals)))
        for totals in ({OPERATIONS: 10_000}, {OPERATIONS: 100}, {})
    )
    assert many == 100 * few
    assert unknown == UNKNOWN_S


def test_two_shards_run_what_one_run_does(tmp_path: Path) -> None:
    def ran(*options: str) -> set[str]:
        result = run(tmp_path, "-k", "test_activation", "-v", *options)
        assert result.returncode == 0, result.stdout
        return {line.split()[0] for line in result.stdout.splitlines() if "::" in line}

    first, second = ran("--perf-shard", "1/2"), ran("--perf-shard", "2/2")
    assert first
    assert second
    assert not first & second
    assert first | second == ran()
