"""What the suite itself costs per timed round: `python -m tests.benchmarks.overhead`.

A call that does nothing goes through the same rounds and the same `benchmark.pedantic` as a real
one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from fixtures.devices.cpu import CpuDevice
from fixtures.measuring.rounds import Plan, Round, finished
from fixtures.measuring.sampler import open_rounds
from fixtures.scenarios import Scenario, find_scenario

ROUNDS = 2000


def empty(scenario: Scenario) -> Scenario:
    """The scenario with calls that return at once."""
    nothing = np.zeros((1, 8, 8, 3))
    return replace(
        scenario, workload=replace(scenario.workload, caller=lambda pipeline, call: nothing)
    )


def test_an_empty_call(benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = find_scenario("storybook", "sdpa")
    plan = Plan(groups=1, pairs=ROUNDS + 1)
    with open_rounds(scenario, plan, CpuDevice(), empty) as rounds:
        next(rounds)()  # Loads and places both.

        def setup() -> tuple[tuple[Callable[[], Round]], dict[str, object]]:
            return (next(rounds),), {}

        start_s = time.perf_counter()
        benchmark.pedantic(
            lambda candidate_round: candidate_round(), setup=setup, rounds=ROUNDS, iterations=1
        )
        total_s = time.perf_counter() - start_s
        timing = finished(rounds)
    inner_s = np.median(timing.groups[0].candidate_s)
    outer_s = benchmark.stats.stats.median
    with capsys.disabled():
        print(
            f"\nan empty call: {inner_s * 1e6:.1f} us on the judged clock, {outer_s * 1e6:.1f} us "
            f"for pytest-benchmark; a pair of rounds in all: {total_s / ROUNDS * 1e6:.1f} us"
        )


def main() -> int:
    """Measure it; the suite's own configuration takes no part."""
    options = ["-q", "--noconftest", "-p", "no:cacheprovider", "--benchmark-columns=median,stddev"]
    return int(pytest.main([__file__, *options]))


if __name__ == "__main__":
    sys.exit(main())
