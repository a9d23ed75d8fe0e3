"""pytest-benchmark runs and reports the candidate's rounds; every latency is a comparison."""

from __future__ import annotations

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
