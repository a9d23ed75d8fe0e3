"""Runs beside each other: what differs, which way is worse, and what only one of them has."""

from __future__ import annotations

import math
from typing import Any

import pytest

from fixtures.report.comparison import Comparison, compare_runs
from fixtures.report.page import page
from fixtures.report.record import RunRecord, ScenarioRecord
from fixtures.report.summary import summary

NAMES = ("before.json", "after.json")
WORK = {"operations": 10, "flops": 7}


def run_of(torch: str = "2.12.0", **figures: Any) -> RunRecord:
    record = ScenarioRecord("storybook-fp16", "storybook", "fp16", "precision")
    for name, value in figures.items():
        setattr(record, name, value)
    return RunRecord(scenarios={record.id: record}, software={"torch": torch, "numpy": "2.4"})


def compared(before: dict[str, Any], after: dict[str, Any]) -> Comparison:
    return compare_runs(NAMES, (run_of(**before), run_of("2.13.0", **after)))


@pytest.mark.parametrize(
    ("figures", "name", "change"),
    [
        (({"latency_ms": 100.0}, {"latency_ms": 150.0}), "latency", "+50.0 %"),
        (({"ratios": [0.5, 0.5]}, {"ratios": [0.6]}), "latency ratio", "+20.0 %"),
        (({"peak_bytes": 2**30}, {"peak_bytes": 2**31}), "peak memory", "+100.0 %"),
        (({"work": WORK}, {"work": {**WORK, "flops": 14}}), "flops", "+100.0 %"),
        (({"ssim": 0.99}, {"ssim": 0.90}), "SSIM", "-9.1 %"),
    ],
)
def test_a_figure_that_got_worse_is_named_so_and_the_other_way_is_not(
    figures: tuple[dict[str, Any], dict[str, Any]], name: str, change: str
) -> None:
    before, after = figures
    (worse,) = compared(before, after).changes
    assert (worse.name, worse.change, worse.worse) == (name, change, True)
    (better,) = compared(after, before).changes
    assert not better.worse


def test_equal_figures_are_counted_and_not_shown() -> None:
    found = compared({"peak_bytes": 1, "work": WORK}, {"peak_bytes": 1, "work": WORK})
    assert (found.changes, found.equal) == ((), 3)
    assert found.software == ("torch 2.12.0 -> 2.13.0",)


def test_the_largest_change_comes_first() -> None:
    found = compared({"latency_ms": 100.0, "ssim": 0.9}, {"latency_ms": 101.0, "ssim": 0.1})
    assert [one.name for one in found.changes] == ["SSIM", "latency"]


def test_what_only_one_run_has_is_said() -> None:
    found = compare_runs(NAMES, (run_of(latency_ms=1.0), RunRecord()))
    assert found.missing == ("storybook-fp16 is not in after.json",)
    (change,) = found.changes
    assert (change.texts, change.change) == (["1 ms", "-"], "only in one")
    assert math.isinf(change.share)


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0])
def test_figures_that_are_none_have_no_share_and_are_no_progress(value: float) -> None:
    (change,) = compared({"latency_ms": value}, {"latency_ms": 5.0}).changes
    assert math.isinf(change.share)
    assert change.worse is (value == 0.0)


def test_three_runs_stand_in_their_order() -> None:
    runs = [run_of(latency_ms=ms) for ms in (1.0, 2.0, 4.0)]
    (change,) = compare_runs(("a", "b", "c"), runs).changes
    assert (change.texts, change.change) == (["1 ms", "2 ms", "4 ms"], "+300.0 %")


@pytest.mark.parametrize("count", [0, 1])
def test_one_run_is_no_comparison(count: int) -> None:
    with pytest.raises(ValueError, match="two runs"):
        compare_runs(NAMES[:count], [RunRecord()] * count)


def test_page_and_summary_show_it_escaped() -> None:
    found = compare_runs(("<b>", "after"), (run_of(latency_ms=1.0), run_of(latency_ms=2.0)))
    html = page(run_of(latency_ms=2.0), strict=False, comparison=found)
    assert "<li>&lt;b&gt;</li>" in html
    assert "+100.0 % (worse)" in html
    text = summary(run_of(latency_ms=2.0), strict=False, comparison=found)
    assert "| storybook-fp16 | latency | 1 ms | 2 ms | +100.0 % (worse) |" in text
    assert "<b>" not in text
