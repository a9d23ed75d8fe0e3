"""No slower than its baseline allows, measured in pairs with the fp32 reference."""

from functools import partial

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from fixtures.devices import Device
from fixtures.looks import LookBudget, look_until_decided
from fixtures.measurement import ScenarioError
from fixtures.metrics import LATENCY
from fixtures.plugin import FurtherLook, Judge
from fixtures.report.record import RunRecord, ScenarioRecord
from fixtures.rounds import PairedRounds, Timing, put_timings
from fixtures.scenarios import Scenario
from fixtures.verdicts import (
    RATIO_TOLERANCE,
    YARDSTICK_TOLERANCE,
    Case,
    Verdict,
    judge_absolute_latency,
    judge_ratio,
)


def test_latency(
    benchmark: BenchmarkFixture,
    rounds: PairedRounds,
    scenario: Scenario,
    device: Device,
    case: Case,
    further_look: FurtherLook,
    look_budget: LookBudget,
    record: ScenarioRecord,
    run_record: RunRecord,
    judge: Judge,
    pytestconfig: pytest.Config,
) -> None:
    """The ratio to the reference is judged; further processes look where one cannot decide."""
    if no_clock := device.missing("clock"):
        pytest.skip(f"unjudged: {no_clock}")
    if pytestconfig.getoption("benchmark_disable"):
        run_record.note("every latency is unjudged: pytest-benchmark is disabled")
        pytest.skip("unjudged: pytest-benchmark is disabled")

    def first_look() -> Timing:
        if benchmark.disabled:  # It disables itself in workers, which here share no device.
            return rounds.run()
        benchmark.pedantic(
            rounds.candidate_round,
            setup=rounds.before_round,
            rounds=rounds.plan.rounds,
            iterations=1,
        )
        return rounds.close()

    tolerance = YARDSTICK_TOLERANCE if scenario.is_reference else RATIO_TOLERANCE
    try:
        timings, ratio_verdict = look_until_decided(
            first_look,
            further_look,
            partial(judge_ratio, case, tolerance=tolerance),
            look_budget,
        )
        verdicts = [ratio_verdict, judge_absolute_latency(case, timings[0].busy_ms)]
        ratio = put_timings(record, scenario, timings)
        record.baseline_ratios = list(case.entry.ratios) if case.entry else []
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
            verdict=ratio_verdict.outcome.value,
        )
    except ScenarioError as error:
        verdicts = [Verdict(scenario.id, LATENCY.name, error.outcome, str(error))]
    judge(*verdicts)
