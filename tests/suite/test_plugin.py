"""pytest-benchmark runs and reports the candidate's rounds; every latency is a comparison."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from fixtures.measuring.rounds import Plan, Round
from fixtures.records.timing import Timing
from fixtures.settings import REPOSITORY
from fixtures.suite.judging import latencies_of
from fixtures.suite.latency import JudgedClock, _benchmarked
from tests.support.fake_device import FakeDevice
from tests.support.fake_scenarios import STEPS, FakeScenario, fake_scenario
from tests.support.running import own_environment

PLAN = Plan(groups=2, pairs=3)
REFERENCE_S, CANDIDATE_S, SET_UP_S = 1.0, 1.5, 100.0


DEVICE = FakeDevice(layout_s=SET_UP_S)
CLOCK = JudgedClock()
on_the_judged_clock = pytest.mark.benchmark(timer=CLOCK)


@dataclass
class Bench:
    """A candidate C and its reference R, whose work lets the device's clock run.

    `drawn` and `left` are who was timed and whose technique was left.
    """

    drawn: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def sample(self, benchmark: BenchmarkFixture) -> Timing:
        """One timing of the candidate."""
        reference = self._scenario("R", REFERENCE_S)
        candidate = self._scenario("C", CANDIDATE_S, others={"fp32": reference})
        return _benchmarked(benchmark, DEVICE, CLOCK, candidate, PLAN)

    def _scenario(self, name: str, seconds: float, **options: Any) -> FakeScenario:
        def draw(steps: int | None = None) -> None:
            if steps != STEPS:
                DEVICE.now_s += SET_UP_S
                return
            self.drawn.append(name)
            DEVICE.now_s += seconds

        return fake_scenario(draw, name, leave=lambda: self.left.append(name), **options)


@pytest.fixture
def enabled(benchmark: BenchmarkFixture, monkeypatch: pytest.MonkeyPatch) -> BenchmarkFixture:
    """pytest-benchmark's own fixture, enabled whatever the command line says, and not reported."""
    monkeypatch.setattr(benchmark, "disabled", False)
    monkeypatch.setattr(benchmark, "_add_stats", lambda stats: None)
    return benchmark


@on_the_judged_clock
def test_the_rounds_that_are_reported_are_the_candidate_s(enabled: BenchmarkFixture) -> None:
    bench = Bench()
    timing = bench.sample(enabled)
    assert enabled.stats is not None
    assert enabled.stats.stats.data == [CANDIDATE_S] * PLAN.rounds
    assert "".join(bench.drawn) == "RCRCRCR" * PLAN.groups
    assert timing.sample.log_ratio == pytest.approx(math.log(CANDIDATE_S / REFERENCE_S))
    assert timing.judged_ms == CANDIDATE_S * 1000
    assert sorted(bench.left) == ["C", "R"]


def test_the_judged_clock_runs_while_a_round_does_wherever_that_is() -> None:
    clock = JudgedClock()
    assert clock() == 0.0
    for _ in range(2):
        clock.run(lambda: Round(judged_s=2.0, wall_s=4.0))
    assert clock() == 4.0


def test_in_a_worker_where_pytest_benchmark_disables_itself_the_rounds_run_all_the_same(
    enabled: BenchmarkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enabled, "disabled", True)
    bench = Bench()
    timing = bench.sample(enabled)
    assert "".join(bench.drawn) == "RCRCRCR" * PLAN.groups
    assert len(timing.wall_s) == PLAN.rounds
    assert enabled.stats is None


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
