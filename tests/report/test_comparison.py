"""Runs beside each other: what differs, which way is worse, and what makes them hard to compare."""

from __future__ import annotations

import math
from typing import Any

import pytest

from fixtures.records.counts import FLOPS, OPERATIONS
from fixtures.records.run import RunRecord
from fixtures.report.comparison import RunComparison, compare_runs
from fixtures.report.page import page
from fixtures.report.summary import markdown
from tests.support.counting import counted
from tests.support.runs import run_record, scenario_record, timing

NAMES = ("before.json", "after.json")
COUNTS = counted({FLOPS: 7}, {"aten::silu": 6, "aten::mm": 4})
TO_FP32 = {"timed_against": "fp32"}


def run_of(torch: str = "2.12.0", **figures: Any) -> RunRecord:
    software = {"torch": torch, "numpy": "2.4"}
    return run_record(scenario_record("fp16", **figures), software=software)


def compared(before: dict[str, Any], after: dict[str, Any]) -> RunComparison:
    return compare_runs(NAMES, (run_of(**before), run_of("2.13.0", **after)))


@pytest.mark.parametrize(
    ("before", "after", "name", "change"),
    [
        ({"wall_ms": 100.0}, {"wall_ms": 150.0}, "latency", "+50.0 %"),
        ({"bound_ms": 4.0}, {"bound_ms": 5.0}, "roofline bound of the latency", "+25.0 %"),
        (
            {"timings": [timing(0.5), timing(0.5)], **TO_FP32},
            {"timings": [timing(0.6)], **TO_FP32},
            "latency ratio to fp32",
            "+20.0 %",
        ),
        (
            {"timings": [timing(0.5)], **TO_FP32},
            {"timings": [timing(0.4), timing(0.9)], **TO_FP32},
            "latency ratio to fp32",
            "+20.0 %",
        ),
        ({"peak_bytes": 2**30}, {"peak_bytes": 2**31}, "peak memory", "+100.0 %"),
        (
            {"counts": counted({FLOPS: 7})},
            {"counts": counted({FLOPS: 14})},
            "flops",
            "+100.0 %",
        ),
        ({"ssim": 0.99}, {"ssim": 0.90}, "SSIM", "-9.1 %"),
    ],
)
def test_a_figure_that_got_worse_is_named_so_and_the_other_way_is_not(
    before: dict[str, Any], after: dict[str, Any], name: str, change: str
) -> None:
    (worse,) = compared(before, after).changes
    assert (worse.name, worse.change, worse.worse) == (name, f"{change} (worse)", True)
    (better,) = compared(after, before).changes
    assert not better.worse
    assert "worse" not in better.change


def test_changed_operations_are_listed_with_their_kinds_also_where_the_total_is_the_same() -> None:
    more = counted({FLOPS: 7}, {"aten::silu": 8, "aten::mm": 4})
    (change,) = compared({"counts": COUNTS}, {"counts": more}).changes
    assert (change.name, change.texts, change.note) == ("operations", ["10", "12"], "silu +2")
    swapped = counted({FLOPS: 7}, {"aten::silu": 4, "aten::mm": 6})
    (change,) = compared({"counts": COUNTS}, {"counts": swapped}).changes
    assert (change.texts, change.note) == (["10", "10"], "mm +2, silu -2")
    assert not change.worse


def test_equal_figures_are_counted_and_not_shown() -> None:
    figures = {"peak_bytes": 1, "counts": COUNTS}
    found = compared(figures, figures)
    assert (found.changes, found.equal) == ((), 3)
    assert found.software == ("torch 2.12.0 -> 2.13.0",)


def test_the_largest_change_comes_first_and_timings_come_last() -> None:
    before = {"wall_ms": 100.0, "ssim": 0.9, "counts": COUNTS}
    after = {"wall_ms": 150.0, "ssim": 0.8, "counts": counted({OPERATIONS: 10, FLOPS: 10})}
    found = compared(before, {**after, "timings": [timing()], **TO_FP32})
    names = [one.name for one in found.changes]
    assert names == [
        "flops",
        "SSIM",
        "latency ratio to fp32",
        "latency",
    ]


def test_what_only_one_run_has_is_named_and_has_no_change() -> None:
    found = compare_runs(NAMES, (run_of(wall_ms=1.0), run_record()))
    assert found.notes == ("storybook-fp16 is not in after.json.",)
    assert (found.changes, found.equal) == ((), 0)
    (change,) = compared({"wall_ms": 1.0}, {}).changes
    assert (change.texts, change.change) == (["1 ms", "-"], "not in every run")
    assert math.isinf(change.share)


def test_other_weights_and_another_device_are_said() -> None:
    before, after = run_of(), run_of()
    after.weights = "random"
    (note,) = compare_runs(NAMES, (before, after)).notes
    assert note == ("The weights differ: each workload's own (before.json), random (after.json).")
    before.weights, after.device_key = "random", "simulated"
    (note,) = compare_runs(NAMES, (before, after)).notes
    assert note == "The devices differ: cpu (before.json), simulated (after.json)."


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0])
def test_figures_that_are_none_have_no_share_and_are_no_progress(value: float) -> None:
    (change,) = compared({"wall_ms": value}, {"wall_ms": 5.0}).changes
    assert math.isinf(change.share)
    assert change.worse is (value == 0.0)


def test_three_runs_stand_in_their_order() -> None:
    runs = [run_of(wall_ms=ms) for ms in (1.0, 2.0, 4.0)]
    (change,) = compare_runs(("a", "b", "c"), runs).changes
    assert (change.texts, change.change) == (["1 ms", "2 ms", "4 ms"], "+300.0 % (worse)")


@pytest.mark.parametrize("count", [0, 1])
def test_one_run_is_no_comparison(count: int) -> None:
    with pytest.raises(ValueError, match="two runs"):
        compare_runs(NAMES[:count], [RunRecord()] * count)


def test_page_and_summary_show_it_escaped() -> None:
    kinds = (counted({}, {"<i>": 1}), counted({}, {"aten::mm": 1}))
    before, after = (run_of(wall_ms=n + 1.0, counts=kinds[n]) for n in (0, 1))
    after.weights = "<u>"
    found = compare_runs(("<s>", "after"), (before, after))
    html = page(after, strict=False, comparison=found)
    text = markdown(after, strict=False, comparison=found)
    assert "<li>&lt;s&gt;</li>" in html
    assert "+100.0 % (worse)" in html
    assert "| storybook-fp16 | latency | 1 ms | 2 ms | +100.0 % (worse) |  |" in text
    for shown in (html, text):
        assert "The weights differ" in shown
        assert not any(tag in shown for tag in ("<s>", "<i>", "<u>"))
