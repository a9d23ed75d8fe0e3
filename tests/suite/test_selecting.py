"""A misspelt -k is told which names come close."""

from __future__ import annotations

import pytest

from fixtures.scenarios import covering, left_out, scenarios
from fixtures.settings import Settings
from fixtures.suite.selecting import suggestions

FOUND = scenarios(["storybook"])


@pytest.mark.parametrize(
    ("keyword", "meant"),
    [
        ("[storybook-sdap]", "storybook-sdpa"),
        ("chanels_last", "channels_last"),
        ("not [storybook-bf61] and test_latency", "storybook-bf16"),
        ("zzz", ""),
    ],
)
def test_the_closest_names_are_given_and_where_none_is_close_the_list(
    keyword: str, meant: str
) -> None:
    sentence = suggestions(keyword, FOUND, Settings(device="cpu"))
    assert sentence.startswith(f"-k {keyword!r} selects no scenario")
    assert ("; did you mean " in sentence) == bool(meant)
    assert meant in sentence
    assert "--collect-only" in sentence


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
