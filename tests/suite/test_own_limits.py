"""Runs with --perf-limits: what fails, what is said of the rest, and the same by workers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fixtures.records.run import RESULTS
from tests.suite.test_parallel import summary
from tests.support import fake_bench
from tests.support.running import run_suite

BF16 = ("-k", "[storybook-bf16]")
FAILS = """
[[budget]]
scenarios = "storybook-b*"
device = "h200"
peak_memory = "1 MiB"
latency = "60 s"
ssim = 0.01

[[budget]]
scenarios = "sdxl-*"
operations = 1

[[tolerance]]
latency = "15 %"
host_calls = "1 %"
"""
BUDGET = "limits.toml, [[budget]] 1"
BROKEN = f"storybook-bf16: peak memory 1.42 MiB is above your budget of 1.00 MiB ({BUDGET})"
UNUSED = "limits.toml, [[budget]] 2 ('sdxl-*' on '*') selects no scenario that ran"


def run(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    """A fake run with these limits, against baselines in the folder."""
    path = folder / "limits.toml"
    path.write_text(text, encoding="utf-8")
    limits = ("--perf-limits", str(path), "--perf-baselines", str(folder / "baselines"))
    return run_suite(*fake_bench.OPTIONS, *limits, *options)


def test_a_budget_fails_and_holds_without_a_baseline(tmp_path: Path) -> None:
    report = tmp_path / "report"
    result = run(tmp_path, FAILS, *BF16, "--perf-report", str(report))
    assert result.returncode == pytest.ExitCode.TESTS_FAILED
    assert BROKEN in result.stdout
    said = " ".join(result.stdout.split())
    assert "2 met, 1 not met, 0 undecided, 1 not judged; " + UNUSED in said
    assert "1.42 MiB FAIL" in said
    assert "latency judged for 1 of 1" in said
    wide = "latency of *: the limit of 15 % is yours, wider than the suite's 6 % (limits.toml, [["
    assert wide in said
    assert "host calls of *" not in said
    for written in ("summary.md", "report.html"):
        assert "is above your budget of 1.00 MiB" in (report / written).read_text(encoding="utf-8")
    record = RESULTS.read(report / "results.json").scenarios["storybook-bf16"]
    budgets = {one.metric for one in record.verdicts if one.budget == BUDGET}
    assert budgets == {"peak memory", "latency", "SSIM"}

    result = run(tmp_path, FAILS.replace('"1 MiB"', '"2 MiB"'), *BF16)
    assert result.returncode == pytest.ExitCode.OK
    assert "3 met, 0 not met, 0 undecided, 1 not judged" in result.stdout


def test_a_refresh_is_held_to_no_budget_and_its_command_repeats_the_file(tmp_path: Path) -> None:
    refresh = ("--perf-update-baselines", "--perf-reason", "test")
    result = run(tmp_path, FAILS, "-k", "storybook-fp", *refresh)
    assert result.returncode == pytest.ExitCode.OK, result.stdout
    assert "limits of" not in result.stdout
    assert "is yours" not in result.stdout
    result = run(tmp_path, FAILS, *BF16)  # has no entry beside those
    assert f"--perf-limits={tmp_path / 'limits.toml'} -k" in result.stdout


@pytest.mark.parametrize(
    ("option", "lacks", "reason"),
    [
        ("--benchmark-disable", "", "pytest-benchmark is disabled"),
        ("-q", "clock", "it has no clock"),
    ],
)
def test_a_latency_that_nothing_measures_is_not_judged(
    option: str, lacks: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_LACKS", lacks)
    report = tmp_path / "report"
    run(tmp_path, FAILS, *BF16, option, "--perf-report", str(report))
    record = RESULTS.read(report / "results.json").scenarios["storybook-bf16"]
    found = [one.detail for one in record.verdicts if one.budget and one.metric == "latency"]
    assert found == [reason]


@pytest.mark.long
def test_workers_say_what_one_process_says(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    alone, shared = (
        run(tmp_path, FAILS, "-k", "not test_latency", *options) for options in ((), ("-n", "2"))
    )
    assert alone.returncode == shared.returncode == pytest.ExitCode.TESTS_FAILED
    assert summary(alone.stdout) == summary(shared.stdout)
    assert UNUSED in " ".join(shared.stdout.split())
