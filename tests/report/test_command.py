"""`nox -s report`: reports of finished runs from their results alone, in a light environment."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from fixtures.commands.report import main
from fixtures.records.outcome import Outcome
from fixtures.records.run import RESULTS, RunRecord
from fixtures.report.files import write_report
from tests.support.runs import MIB, run_record, scenario_record, timing

RUN = run_record(
    scenario_record("fp16", Outcome.INCONCLUSIVE, wall_ms=120.0, peak_bytes=MIB),
    scenario_record("fp32", Outcome.PASS, wall_ms=200.0, peak_bytes=2 * MIB, timings=[timing()]),
)
HEAVY = (
    *("torch", "diffusers", "transformers", "accelerate", "xformers", "skimage", "safetensors"),
    "flip_evaluator",
    *("matplotlib", "pytest", "pynvml", "hypothesis"),
)


def stored(path: Path, run: RunRecord = RUN) -> str:
    path.write_text(RESULTS.dump(run), encoding="utf-8")
    return str(path)


def test_a_report_is_rebuilt_from_its_results_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = write_report(tmp_path / "first", RUN, strict=False)
    again = tmp_path / "again"
    assert main([str(first[0]), "--perf-report", str(again)]) == 0
    assert str(again / "report.html") in capsys.readouterr().out
    for path in first:
        assert (again / path.name).read_bytes() == path.read_bytes()


def test_strict_is_as_in_a_run(tmp_path: Path) -> None:
    given = [stored(tmp_path / "results.json"), "--perf-report", str(tmp_path)]
    for options, words in (([], "0 failed, 1 undecided"), (["--perf-strict"], "1 failed, 0 un")):
        assert main([*given, *options]) == 0
        assert words in (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_shards_become_one_report(tmp_path: Path) -> None:
    halves = [
        stored(
            tmp_path / f"{name}.json",
            run_record(scenario_record(name), notes=["common"], recorded_at=f"2026-11-2{day}"),
        )
        for day, name in ((2, "fp32"), (1, "fp16"))
    ]
    assert main(["--merge", *halves, "--perf-report", str(tmp_path / "whole")]) == 0
    whole = RESULTS.read(tmp_path / "whole" / "results.json")
    assert list(whole.scenarios) == ["storybook-fp32", "storybook-fp16"]
    assert (whole.notes, whole.recorded_at) == (["common"], "2026-11-21")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--perf-strict"], "arguments are required: results"),
        (["part1.json", "part2.json"], "add --merge"),
        (["results.json", "--output", "x"], "--output"),
        (["results.json", "--perf-rep", "x"], "--perf-rep"),
    ],
)
def test_options_that_do_not_fit_are_refused_by_name(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert words in capsys.readouterr().err.splitlines()[-1]


def test_a_folder_that_cannot_be_written_is_refused_with_the_option_that_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = stored(tmp_path / "results.json")
    assert main([path, "--perf-report", path]) == 2
    said = capsys.readouterr().err
    assert f"--perf-report {path} cannot be written" in said
    assert "give another folder" in said
    assert RESULTS.read(Path(path)) == RUN
    assert said.count("\n") == 1


def in_an_environment_without(modules: Iterable[str], *arguments: str) -> int:
    """The exit status of the command in a process that cannot import these modules."""
    code = (
        "import runpy, sys\n"
        f"sys.modules.update(dict.fromkeys({list(modules)!r}))\n"
        "runpy.run_module('fixtures.commands.report', run_name='__main__')"
    )
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, check=False, timeout=120).returncode


def test_a_report_needs_none_of_the_packages_that_measuring_needs(tmp_path: Path) -> None:
    arguments = (stored(tmp_path / "results.json"), "--perf-report", str(tmp_path / "out"))
    assert in_an_environment_without(HEAVY, *arguments) == 0
    assert "storybook-fp16" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
