"""A workload that does not run says how it does; shards together run everything once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.catalogue.matrix import covering, groups_of, left_out, scenarios
from fixtures.suite.selecting import in_shard, selected


@pytest.mark.parametrize(
    ("keyword", "device", "named", "options"),
    [
        ("[qwen-image-bf16]", "simulated", [], "--perf-workload qwen-image"),
        ("[Qwen-Image-bf16]", "cpu", [], "--perf-device simulated --perf-workload qwen-image"),
        ("[flux-bf16]", "cpu", [], "--perf-device simulated"),
        ("[flux-bf16]", "cpu", ["storybook"], "--perf-device simulated --perf-workload flux"),
        ("[flux2-bf16]", "simulated", ["flux"], "--perf-workload flux2"),
        ("storybook-dit", "cpu", [], "--perf-workload storybook-dit"),
        # Of a workload that runs nothing is to be added.
        ("flux-bf61", "simulated", [], ""),
        ("storybook-dit-bf61", "simulated", ["storybook-dit"], ""),
        ("x", "simulated", [], ""),
    ],
)
def test_a_workload_that_does_not_run_is_told_how_it_does(
    keyword: str, device: str, named: list[str], options: str
) -> None:
    said = left_out(keyword, device, named)
    assert said.endswith(f" is not a workload of this run; add {options}" if options else said)
    assert bool(said) == bool(options)


def test_a_covering_part_has_each_technique_and_each_workload() -> None:
    matrix = scenarios(["sd15", "sdxl", "flux"])
    part = [scenario for scenario in matrix if scenario.id in covering(matrix)]
    assert {scenario.technique.id for scenario in part} == {
        scenario.technique.id for scenario in matrix
    }
    assert {scenario.workload.name for scenario in part} == {"sd15", "sdxl", "flux"}
    assert len(part) == len({scenario.technique.id for scenario in part}) + 1  # sdxl, by one more


@pytest.mark.parametrize("of", [1, 2, 3, 9])
def test_every_scenario_is_in_one_shard_with_what_it_is_compared_with(of: int) -> None:
    matrix = scenarios(["storybook", "storybook-256", "sd15"])
    items: Any = [
        *(
            SimpleNamespace(callspec=SimpleNamespace(params={"scenario": scenario}))
            for scenario in matrix
        ),
        SimpleNamespace(),  # of no scenario
    ]
    shards = [in_shard(items, matrix, number, of) for number in range(1, of + 1)]
    assert sorted(items.index(item) for shard in shards for item in shard) == [*range(len(items))]
    assert items[-1] in shards[0]
    group_of = groups_of(matrix)
    groups = [{group_of[scenario.id] for scenario in selected(shard)} for shard in shards]
    assert sum(map(len, groups)) == len({*group_of.values()}), "no group is in two shards"
    assert max(map(len, groups)) - min(map(len, groups)) <= 1
