"""Shards: together they run everything once, and compared techniques stay in one of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fixtures.measuring.rounds import ROUNDS_S
from fixtures.records.counts import OPERATIONS
from fixtures.scenarios import Scenario, groups_of, scenarios
from fixtures.suite.sharding import UNKNOWN_S, cost_s, shard
from tests.support import fake_bench
from tests.support.counting import counted
from tests.support.running import run_suite
from tests.support.runs import entry, latency

FOUND = scenarios(["storybook", "storybook-256", "sd15"])
NAMES = groups_of(FOUND)
FEW = ("storybook-fp32", "storybook-tf32", "storybook-bf16", "storybook-256-fp32", "sd15-fp32")
"""Scenarios that are groups of their own, few enough to try every split."""
WIDE = settings(max_examples=40, deadline=None, derandomize=True, database=None)


def loads(found: Sequence[Scenario], cost: Callable[[Scenario], float], of: int) -> list[float]:
    """What each of so many shards costs."""
    return [
        sum(cost(one) for one in found if one.id in shard(found, cost, number, of))
        for number in range(1, of + 1)
    ]


def best_load(costs: Sequence[float], of: int) -> float:
    """The load of the fullest shard in the best of all splits, found by trying each."""
    splits = itertools.product(range(of), repeat=len(costs))
    return min(
        max(sum(one for one, where in zip(costs, split, strict=True) if where == n) for n in split)
        for split in splits
    )


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


@WIDE
@given(
    of=st.integers(1, 4),
    costs=st.lists(st.integers(1, 20), min_size=len(FEW), max_size=len(FEW)),
)
@example(of=2, costs=[3, 3, 2, 2, 2])  # 7 against 6: as far off as two shards can be
@example(of=2, costs=[1, 1, 1, 1, 2])  # 4 against 3 if the dearest came last
def test_no_shard_costs_more_than_four_thirds_of_the_best_split(of: int, costs: list[int]) -> None:
    few = [one for one in FOUND if one.id in FEW]
    known = dict(zip((one.id for one in few), costs, strict=True))
    fullest = max(loads(few, lambda scenario: known[scenario.id], of))
    best = best_load(costs, of)
    assert best <= fullest <= (4 / 3 - 1 / (3 * of)) * best * (1 + 1e-9)


def test_the_scenarios_that_are_split_in_every_way_are_groups_of_their_own() -> None:
    members = list(NAMES.values())
    assert [members.count(NAMES[name]) for name in FEW] == [1] * len(FEW)
    assert best_load([3, 3, 2, 2, 2], 2) == 6


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
    options = (
        *fake_bench.OPTIONS,
        *("-k", "test_activation", "-v", "--perf-baselines", str(tmp_path)),
    )

    def ran(*more: str) -> set[str]:
        result = run_suite(*options, *more)
        assert result.returncode == 0, result.stdout
        return {line.split()[0] for line in result.stdout.splitlines() if "::" in line}

    first, second = ran("--perf-shard", "1/2"), ran("--perf-shard", "2/2")
    assert first
    assert second
    assert not first & second
    assert first | second == ran()
