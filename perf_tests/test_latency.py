"""No slower than its baseline allows, measured in pairs with the fp32 reference."""

import time
from collections.abc import Callable

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from fixtures.plugin import Judge
from fixtures.report.record import ScenarioRecord
from fixtures.rounds import LookBudget, PairedRounds, Timing
from fixtures.scenarios import Scenario
from fixtures.statistics import ratio_interval
from fixtures.verdicts import (
    MAX_LOOKS,
    RATIO_TOLERANCE,
    YARDSTICK_TOLERANCE,
    Case,
    Outcome,
    judge_absolute_latency,
    judge_ratio,
)


def test_latency(
    benchmark: BenchmarkFixture,
    rounds: PairedRounds,
    scenario: Scenario,
    case: Case,
    further_look: Callable[[], Timing],
    look_budget: LookBudget,
    record: ScenarioRecord,
    judge: Judge,
) -> None:
    """The ratio to the reference is judged; further processes look where one cannot decide."""
    if benchmark.disabled:
        pytest.skip("unjudged: pytest-benchmark is disabled")
    start_s = time.monotonic()
    benchmark.pedantic(
        rounds.candidate_round, setup=rounds.before_round, rounds=rounds.plan.rounds, iterations=1
    )
    timings = [rounds.close()]
    look_s = time.monotonic() - start_s
    tolerance = YARDSTICK_TOLERANCE if scenario.is_reference else RATIO_TOLERANCE
    verdict = judge_ratio(case, [timings[0].look], tolerance)
    while (
        verdict.outcome is Outcome.INCONCLUSIVE
        and len(timings) < MAX_LOOKS
        and look_budget.allows(look_s)
    ):
        start_s = time.monotonic()
        timings.append(further_look())
        look_budget.spend(time.monotonic() - start_s)
        verdict = judge_ratio(case, [timing.look for timing in timings], tolerance)

    ratio = ratio_interval([timing.look for timing in timings])
    record.latency_ms = timings[0].wall_ms
    record.speedup = None if scenario.is_reference else ratio.inverse()
    benchmark.extra_info.update(
        scenario=scenario.id,
        ratio=ratio.estimate,
        ratio_low=ratio.low,
        ratio_high=ratio.high,
        judged_ms=timings[0].busy_ms,
        looks=len(timings),
        evidence=timings[0].evidence.sentence(),
        peak_bytes=record.peak_bytes,
        ssim=record.ssim,
        verdict=verdict.outcome.value,
    )
    judge(verdict, judge_absolute_latency(case, timings[0].busy_ms))
