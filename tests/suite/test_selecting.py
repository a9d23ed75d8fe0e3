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
    ],
)
def test_the_closest_names_are_given(keyword: str, meant: str) -> None:
    sentence = suggestions(keyword, FOUND, Settings(device="cpu"))
    assert sentence.startswith(f"-k {keyword!r} selects no scenario; did you mean ")
    assert meant in sentence
    assert "--collect-only" in sentence


def test_where_nothing_comes_close_only_the_list_is_named() -> None:
    sentence = suggestions("zzz", FOUND, Settings(device="cpu"))
    assert "did you mean" not in sentence
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
    ],
)
def test_a_workload_that_does_not_run_is_told_how_it_does(
    keyword: str, device: str, named: list[str], options: str
) -> None:
    assert left_out(keyword, device, named).endswith(
        f" is not a workload of this run; add {options}"
    )


@pytest.mark.parametrize(
    ("keyword", "named"), [("flux-bf61", []), ("storybook-dit-bf61", ["storybook-dit"]), ("x", [])]
)
def test_of_a_workload_that_runs_nothing_is_to_be_added(keyword: str, named: list[str]) -> None:
    assert left_out(keyword, "simulated", named) == ""


def test_a_covering_part_has_each_technique_and_each_workload() -> None:
    matrix = scenarios(["sd15", "sdxl", "flux"])
    part = [scenario for scenario in matrix if scenario.id in covering(matrix)]
    assert {scenario.technique.id for scenario in part} == {
        scenario.technique.id for scenario in matrix
    }
    assert {scenario.workload.name for scenario in part} == {"sd15", "sdxl", "flux"}
    assert len(part) == len({scenario.technique.id for scenario in part}) + 1  # sdxl, by one more
