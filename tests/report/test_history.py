"""A folder of results: read in order, one history per device, software changes marked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fixtures.report.__main__ import main
from fixtures.report.history import history_page, read_history
from fixtures.report.record import RunRecord, ScenarioRecord
from fixtures.report.results import ResultsError, to_json

MIB = 2**20


def store(folder: Path, day: int, peak_mib: int, torch: str = "2.12.0", key: str = "cpu") -> None:
    record = ScenarioRecord("storybook-fp16", "storybook", "fp16", "precision")
    record.peak_bytes, record.work = peak_mib * MIB, {"flops": 7, "operations": day}
    run = RunRecord(key, {}, {"torch": torch}, {record.id: record})
    run.recorded_at = f"2026-11-{day:02}T00:00:00+00:00"
    # Named so that the order of files is not the order of days.
    path = folder / f"run{100 - day}" / "results.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(to_json(run)))


def test_runs_stand_in_the_order_of_their_time_and_by_device(tmp_path: Path) -> None:
    store(tmp_path, 2, 20)
    store(tmp_path, 1, 10)
    store(tmp_path, 3, 40, "2.13.0")
    store(tmp_path, 4, 99, key="nvidia-h200")
    found = read_history(tmp_path)
    assert list(found) == ["cpu", "nvidia-h200"]
    history = found["cpu"]
    assert history.software == [(2, "torch 2.12.0 -> 2.13.0")]
    courses = {one.name: one for one in history.courses("storybook-fp16")}
    # FLOPs never changed.
    assert courses.keys() == {"peak memory", "operations"}
    assert courses["peak memory"].values == tuple(float(n * MIB) for n in (10, 20, 40))
    assert courses["peak memory"].first_and_last == "10.00 MiB -> 40.00 MiB (+300.0 %)"


def test_a_run_without_the_scenario_leaves_a_gap(tmp_path: Path) -> None:
    for day in (1, 2):
        store(tmp_path, day, 10 * day)
    (tmp_path / "empty.json").write_text(
        json.dumps(to_json(RunRecord("cpu", recorded_at="2026-11-01T12:00:00+00:00")))
    )
    history = read_history(tmp_path)["cpu"]
    (memory, *_) = history.courses("storybook-fp16")
    assert memory.values == (10 * MIB, None, 20 * MIB)
    assert "data:image/svg+xml" in history_page({"cpu": history})


def test_what_is_no_results_file_is_passed_over_and_named(tmp_path: Path) -> None:
    store(tmp_path, 1, 10)
    (tmp_path / "notes.json").write_text("<script>")
    html = history_page(read_history(tmp_path))
    assert "notes.json is not JSON" in html
    assert "<script>" not in html


@pytest.mark.parametrize("content", [None, "{}"])
def test_a_folder_without_results_is_refused_in_a_sentence(
    content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (tmp_path / "other.json").write_text(content)
    with pytest.raises(ResultsError, match="holds no results of a run"):
        read_history(tmp_path)
    assert main(["--history", str(tmp_path), "--output", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_command_writes_one_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store(tmp_path / "runs", 1, 10)
    store(tmp_path / "runs", 2, 20, "2.13.0")
    assert main(["--history", str(tmp_path / "runs"), "--output", str(tmp_path / "out")]) == 0
    page = tmp_path / "out" / "history.html"
    assert str(page) in capsys.readouterr().out
    assert "before run 2: torch 2.12.0 -&gt; 2.13.0" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("arguments", [[], ["results.json", "--history", "runs"]])
def test_either_files_or_a_folder(arguments: list[str]) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
