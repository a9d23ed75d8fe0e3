"""A folder of results: read in order, one history per device and weights, changes marked."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from fixtures.commands.report import main
from fixtures.metrics.images import SSIM
from fixtures.records.codec import RecordError
from fixtures.records.counts import FLOPS, OPERATIONS, Counts
from fixtures.records.run import RESULTS
from fixtures.report.history import History, Trend, history_page, read_history
from tests.support.runs import MIB, run_record, scenario_record, timing

FP16 = "storybook-fp16"


def store(
    folder: Path, day: int, peak_mib: int | None, torch: str = "2.12.0", **fields: str
) -> None:
    """Write the results of a run; without a peak it has no scenario."""
    record = scenario_record(
        "fp16",
        peak_bytes=(peak_mib or 0) * MIB,
        counts=Counts({FLOPS: 7, OPERATIONS: day}),
        timings=[timing(0.567)],
    )
    run = run_record(
        *([record] if peak_mib else []),
        recorded_at=f"2026-11-{day:02}T00:00:00+00:00",
        software={"torch": torch},
        **fields,
    )
    # Named so that the order of files is not the order of days.
    path = folder / f"run{100 - day}" / "results.json"
    path.parent.mkdir(parents=True)
    path.write_text(RESULTS.dump(run))


def texts(history: History) -> dict[str, str]:
    return {trend.name: trend.text for trend in history.trends[FP16]}


def test_runs_stand_in_the_order_of_their_time_by_device_and_weights(tmp_path: Path) -> None:
    store(tmp_path, 2, 20)
    store(tmp_path, 1, 10)
    store(tmp_path, 3, 40, "2.13.0")
    store(tmp_path, 4, 99, device_key="nvidia-h200")
    store(tmp_path, 5, 77, weights="random")
    histories, unread = read_history(tmp_path)
    assert (list(histories), unread) == (["cpu", "cpu, weights random", "nvidia-h200"], [])
    history = histories["cpu"]
    assert history.software == [(2, "torch 2.12.0 -> 2.13.0")]
    ratio = "latency ratio to the control workload"
    assert texts(history) == {  # FLOPs never changed.
        ratio: "x0.567 -> x0.567 (+0.0 %)",
        "peak memory": "10.00 MiB -> 40.00 MiB (+300.0 %)",
        "operations": "1 -> 3 (+200.0 %)",
    }


def test_a_scenario_of_one_run_has_no_change_and_the_others_are_named(tmp_path: Path) -> None:
    store(tmp_path, 1, None)
    store(tmp_path, 2, 20)
    assert texts(read_history(tmp_path)[0]["cpu"]) == {
        "latency ratio to the control workload": "x0.567; missing in run 1",
        "peak memory": "20.00 MiB; missing in run 1",
    }


def test_a_run_without_the_scenario_leaves_a_gap(tmp_path: Path) -> None:
    for day, peak_mib in ((1, 10), (2, None), (3, 20), (4, None)):
        store(tmp_path, day, peak_mib)
    history = read_history(tmp_path)[0]["cpu"]
    (memory,) = (one for one in history.trends[FP16] if one.name == "peak memory")
    assert memory.values == (10 * MIB, None, 20 * MIB, None)
    assert memory.text == "10.00 MiB -> 20.00 MiB (+100.0 %); missing in runs 2, 4"
    assert history_page({"cpu": history}, []).count("<polyline") == 3


def test_a_rebuilt_report_is_the_same_run(tmp_path: Path) -> None:
    store(tmp_path, 1, 10)
    store(tmp_path, 2, 20)
    stored = tmp_path / "run98" / "results.json"
    again = tmp_path / "rebuilt"
    assert main([str(stored), "--perf-report", str(again)]) == 0
    history = read_history(tmp_path)[0]["cpu"]
    assert [one.run.recorded_at[:10] for one in history.runs] == ["2026-11-01", "2026-11-02"]
    assert {history.runs[1].path, *history.runs[1].copies} == {stored, again / "results.json"}
    assert f"; the same again: {stored}" in history_page({"cpu": history}, [])


def test_a_chart_names_its_lowest_and_highest_value_and_never_more() -> None:
    trend = Trend("SSIM", SSIM, (0.97, None, 1.0, 0.99))
    (high_y, high), (low_y, low) = trend.ends
    assert (high, low) == ("1.0000", "0.9700")
    assert high_y < low_y
    assert [text for _, text in Trend("SSIM", SSIM, (1.0, 1.0)).ends] == ["1.0000"]
    assert Trend("SSIM", SSIM, (math.nan,)).ends == []


def test_what_is_no_results_file_is_left_out_and_named(tmp_path: Path) -> None:
    store(tmp_path, 1, 10)
    (tmp_path / "notes.json").write_text("<script>")
    html = history_page(*read_history(tmp_path))
    assert "notes.json is not JSON" in html
    assert "<script>" not in html


@pytest.mark.parametrize("content", [None, "{}"])
def test_a_folder_without_results_is_refused_in_a_sentence(
    content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (tmp_path / "other.json").write_text(content)
    with pytest.raises(RecordError, match="holds no results of a run"):
        read_history(tmp_path)
    assert main(["--history", str(tmp_path), "--perf-report", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_command_writes_one_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store(tmp_path / "runs", 1, 10)
    store(tmp_path / "runs", 2, 20, "2.13.0")
    folder = tmp_path / "out"
    assert main(["--history", str(tmp_path / "runs"), "--perf-report", str(folder)]) == 0
    assert str(folder / "history.html") in capsys.readouterr().out
    html = (folder / "history.html").read_text(encoding="utf-8")
    assert "before run 2: torch 2.12.0 -&gt; 2.13.0" in html
