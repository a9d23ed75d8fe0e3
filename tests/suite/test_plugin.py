"""pytest-benchmark runs and reports the candidate's rounds; what a log says of a run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from fixtures.settings import REPOSITORY
from fixtures.suite.judging import latencies_of
from fixtures.suite.latency import FinishedRounds
from tests.suite.test_judged import run
from tests.support import fake_bench
from tests.support.running import own_environment

ROUNDS = FinishedRounds((1.5, 2.0, 2.5))


@pytest.fixture
def enabled(benchmark: BenchmarkFixture, monkeypatch: pytest.MonkeyPatch) -> BenchmarkFixture:
    """pytest-benchmark's own fixture, enabled whatever the command line says, and not reported."""
    monkeypatch.setattr(benchmark, "disabled", False)
    monkeypatch.setattr(benchmark, "_add_stats", lambda stats: None)
    return benchmark


@pytest.mark.benchmark(timer=ROUNDS)
def test_the_rounds_that_are_reported_are_those_of_the_sample(enabled: BenchmarkFixture) -> None:
    enabled.pedantic(ROUNDS.next_round, rounds=len(ROUNDS.rounds_s), iterations=1)
    assert enabled.stats is not None
    assert enabled.stats.stats.data == [*ROUNDS.rounds_s]


# Comparisons


def item(path: str, *fixtures: str) -> pytest.Item:
    return cast(pytest.Item, SimpleNamespace(path=path, fixturenames=fixtures))


@pytest.mark.parametrize("name", ["test_latency.py", "test_speed.py", "renamed.py"])
def test_every_test_that_asks_for_a_latency_is_a_comparison_whatever_its_file_is_called(
    name: str,
) -> None:
    items = [item(name, "scenario", "timed", "judge")] * 3 + [
        item("test_latency.py", "scenario", "observed"),
        cast(pytest.Item, SimpleNamespace(path="a text file")),
    ]
    assert latencies_of(items, 1) == 3


def test_the_run_s_other_shards_have_as_many_latencies() -> None:
    assert latencies_of([item("test_latency.py", "timed")] * 3, 4) == 12


@pytest.mark.parametrize(
    ("options", "is_made"), [((), False), (("--benchmark-save=one",), True)], ids=["alone", "save"]
)
def test_a_folder_for_stored_benchmarks_is_made_where_some_are(
    options: tuple[str, ...], is_made: bool, tmp_path: Path
) -> None:
    """In a folder of its own, for the repository may have one."""
    command = (sys.executable, "-m", "pytest", "-c", str(REPOSITORY / "pyproject.toml"))
    done = subprocess.run(
        [*command, "-p", "fixtures.suite.plugin", "--collect-only", ".", *options],
        cwd=tmp_path,
        env={**own_environment(), "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stderr
    assert (tmp_path / ".benchmarks").exists() == is_made


def test_a_log_says_what_is_tested_and_against_what_before_and_after(tmp_path: Path) -> None:
    two = ("-k", "[storybook-bf16] or [storybook-sdpa]")
    recorded = run(tmp_path, *two, "--perf-update-baselines", "--perf-reason", "test").stdout
    assert "\nagainst: " not in recorded
    stored = tmp_path / fake_bench.KEY / "storybook.json"
    text = stored.read_text(encoding="utf-8")
    stored.write_text(re.sub(r'"diffusers": "[^"]*"', '"diffusers": "0.36.0"', text))
    lines = run(tmp_path, *two).stdout.splitlines()
    tested = [number for number, line in enumerate(lines) if line.startswith("under test: ")]
    assert len(tested) == 2  # before anything is measured, and above the table
    assert re.search("diffusers [0-9.]+, torch .* on fake .Testron 9000.", lines[tested[0]])
    assert all("changed since: diffusers 0.36.0 -> " in lines[number + 1] for number in tested)
    assert not any(line.startswith("Name (time in") for line in lines)  # of pytest-benchmark
    assert not run(tmp_path, *two, "-q").stdout.count("under test: ")
