"""Shards: together they run everything once, what belongs together stays so, and none is idle."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.metrics import WORK
from fixtures.rounds import ROUNDS_S
from fixtures.scenarios import Scenario, groups_of, scenarios
from fixtures.sharding import UNKNOWN_S, cost_s, shard
from tests.records import entry
from tests.running import run_suite

FOUND = scenarios(["storybook", "storybook-256", "sd15"])
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

    def cost(scenario: Scenario) -> float:
        return known[scenario.id]

    parts = [shard(FOUND, cost, number, of) for number in range(1, of + 1)]
    assert sorted(name for part in parts for name in part) == sorted(known)
    names = groups_of(FOUND)
    for part in parts:
        together = {names[name] for name in part}
        assert part == {one.id for one in FOUND if names[one.id] in together}
    # Graham's bound, against the larger of the mean load and the dearest group.
    groups: dict[str, float] = {}
    for name, value in known.items():
        groups[names[name]] = groups.get(names[name], 0.0) + value
    best = max(sum(costs) / of, *groups.values())
    assert max(sum(known[name] for name in part) for part in parts) <= 2 * best


@pytest.mark.parametrize(("number", "of"), [(0, 2), (3, 2), (1, 0)])
def test_there_is_no_other_shard(number: int, of: int) -> None:
    with pytest.raises(ValueError, match="no shard"):
        shard(FOUND, lambda scenario: 1.0, number, of)


def test_a_slow_scenario_costs_more_and_an_unknown_one_something() -> None:
    assert cost_s(None) == UNKNOWN_S
    slow, fast = (cost_s(entry(latency_ms=(ms, ms))) for ms in (5000.0, 100.0))
    assert slow > fast > ROUNDS_S
    many, few = (cost_s(entry(latency_ms=(), counters={WORK[0]: n})) for n in (10_000, 100))
    assert many > few


def test_two_shards_run_what_one_run_does(tmp_path: Path) -> None:
    fake = ("-p", "tests.fake_bench", "--perf-device", "simulated", "--perf-workload", "storybook")
    options = (*fake, "-k", "test_activation", "-v", "--perf-baselines", str(tmp_path))

    def ran(*more: str) -> set[str]:
        result = run_suite(*options, *more)
        assert result.returncode == 0, result.stdout
        return {line.split()[0] for line in result.stdout.splitlines() if "::" in line}

    first, second = ran("--perf-shard", "1/2"), ran("--perf-shard", "2/2")
    assert first
    assert second
    assert not first & second
    assert first | second == ran()


@pytest.mark.parametrize("shard", ["0/2", "3/2", "half", "1/0", "1/2/3", "-1/2"])
def test_a_shard_that_is_none_is_refused(shard: str) -> None:
    result = run_suite(f"--perf-shard={shard}", "--collect-only", "-q")
    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"--perf-shard '{shard}' is no shard; it takes I/N, such as 1/4." in result.stderr
