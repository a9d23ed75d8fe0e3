"""Latencies that are sampled at the same time: the same verdicts, rounds and entries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fixtures.records.baseline_store import BaselineStore
from fixtures.records.outcome import Outcome
from fixtures.records.run import RESULTS
from tests.support import fake_bench
from tests.support.running import run_suite

CHOSEN = ("-k", "[storybook-sdpa] or [storybook-bf16] or [storybook-fp32]")
AT_ONCE = ("--perf-at-once", "2")


def run(baselines: Path, *options: str, **environment: str) -> Any:
    """Three scenarios on the bench that measures nothing, on two cores."""
    found = ("--perf-baselines", str(baselines))
    return run_suite(
        *(*fake_bench.OPTIONS, *CHOSEN, *found, *options), **{"FAKE_CORES": "2", **environment}
    )


@pytest.fixture(scope="module")
def baselines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recorded two at once."""
    folder = tmp_path_factory.mktemp("baselines")
    done = run(folder, "--perf-update-baselines", "--perf-reason", "test", *AT_ONCE)
    assert done.returncode == 0, done.stdout
    return folder


def test_a_refresh_has_all_samples_of_each(baselines: Path, tmp_path: Path) -> None:
    done = run(tmp_path, "--perf-update-baselines", "--perf-reason", "test")
    assert done.returncode == 0, done.stdout
    ratios = []
    for folder in (baselines, tmp_path):
        stored = BaselineStore(folder).baseline(fake_bench.KEY, "storybook")
        assert stored is not None
        entries = stored.scenarios.items()
        ratios.append({name: entry.latency[0].ratios for name, entry in entries})
    assert ratios[0] == ratios[1]
    assert {len(of_one) for of_one in ratios[0].values()} == {6}


@pytest.mark.parametrize("options", [AT_ONCE, ()], ids=["at once", "one at a time"])
def test_every_latency_is_judged_and_pytest_benchmark_reports_its_rounds(
    options: tuple[str, ...], baselines: Path, tmp_path: Path
) -> None:
    results = tmp_path / "benchmark.json"
    report = ("--benchmark-json", str(results), "--perf-report", str(tmp_path))
    done = run(baselines, *options, *report, FAKE_SLOW="storybook-bf16")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    recorded = RESULTS.read(tmp_path / "results.json").scenarios
    failed = {
        name
        for name, record in recorded.items()
        if any(verdict.outcome is Outcome.REGRESSION for verdict in record.verdicts)
    }
    assert failed == {"storybook-bf16"}
    benchmarks = json.loads(results.read_text(encoding="utf-8"))["benchmarks"]
    reported = {each["extra_info"]["scenario"]: each["stats"] for each in benchmarks}
    assert reported.keys() == recorded.keys()
    for name, record in recorded.items():
        [first, *_] = record.timings
        rounds = [second for group in first.groups for second in group.candidate_s]
        assert reported[name]["data"] == pytest.approx(rounds)


def test_where_there_are_fewer_cores_it_says_how_many_are_sampled_at_a_time(
    baselines: Path,
) -> None:
    said = "--perf-at-once 2: latencies are sampled 1 at a time here"
    assert said in run(baselines, *AT_ONCE, FAKE_CORES="1").stdout
    assert said not in run(baselines, *AT_ONCE).stdout
