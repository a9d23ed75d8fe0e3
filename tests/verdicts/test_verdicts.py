"""Verdicts: directions, limits, what never passes, how often they err, and what they say."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.metrics import COUNTER, LATENCY, PEAK_MEMORY, RATIO, SSIM, Metric
from fixtures.statistics import Look, spread_of
from fixtures.verdicts import (
    ABSOLUTE_TOLERANCE,
    MAX_LOOKS,
    RATIO_TOLERANCE,
    REGRESSION_ERROR,
    RUN_ERROR,
    YARDSTICK_TOLERANCE,
    Case,
    Outcome,
    Tolerance,
    Verdict,
    judge_absolute_latency,
    judge_counters,
    judge_peak_memory,
    judge_pictures,
    judge_ratio,
    regression_error,
    software_changes,
    worst,
)
from tests.records import MIB, SOFTWARE, entry, look

WIDE = settings(max_examples=80, deadline=None, derandomize=True, database=None)
SCENARIO = "storybook-fp16"
NEWER = {**SOFTWARE, "torch": "2.13.0"}
GREEN = {Outcome.PASS, Outcome.IMPROVEMENT}
SIMULATIONS = 1000


def case(**changes: Any) -> Case:
    fields: dict[str, Any] = {"scenario": SCENARIO, "entry": entry(), "software": NEWER}
    return Case(**{**fields, **changes})


def ratio_verdict(ratio: float, *, looks: int = 1, on: Case | None = None) -> Verdict:
    return judge_ratio(on or case(), [look(ratio)] * looks, RATIO_TOLERANCE)


def memory_verdict(whole: float, *, source: Any = "ledger", **others: float) -> Verdict:
    peaks: Any = {"whole": whole, "denoiser": 500 * MIB, **others}
    return judge_peak_memory(case(), peaks, source)


def counter_verdict(**changes: int) -> Verdict:
    counters = {"aten::mm": 1000, "aten::add": 400}
    return judge_counters(
        case(), {**counters, **{f"aten::{name}": count for name, count in changes.items()}}
    )


# Directions


@pytest.mark.parametrize(
    ("metric", "worse", "better"),
    [
        (RATIO, lambda: ratio_verdict(1.5), lambda: ratio_verdict(0.6)),
        (PEAK_MEMORY, lambda: memory_verdict(600 * MIB), lambda: memory_verdict(400 * MIB)),
        (COUNTER, lambda: counter_verdict(mm=1001), lambda: counter_verdict(mm=999)),
    ],
    ids=lambda value: value.name if isinstance(value, Metric) else "",
)
def test_a_worse_run_is_a_regression_and_a_better_one_an_improvement(
    metric: Metric, worse: Callable[[], Verdict], better: Callable[[], Verdict]
) -> None:
    assert (worse().metric, worse().outcome) == (metric.name, Outcome.REGRESSION)
    assert (better().metric, better().outcome) == (metric.name, Outcome.IMPROVEMENT)


def test_twice_the_absolute_latency_is_a_regression_and_half_of_it_is_none() -> None:
    assert judge_absolute_latency(case(), 250.0).outcome is Outcome.REGRESSION
    assert judge_absolute_latency(case(), 50.0).outcome is Outcome.PASS


def test_a_less_similar_picture_is_a_regression_and_a_more_similar_one_is_none() -> None:
    assert judge_pictures(case(), 0.90, 0.98).outcome is Outcome.REGRESSION
    assert judge_pictures(case(), 0.999, 0.98).outcome is Outcome.PASS


@pytest.mark.parametrize("metric", [LATENCY, RATIO, PEAK_MEMORY, COUNTER])
def test_more_is_worse_of_everything_but_likeness(metric: Metric) -> None:
    assert metric.is_worse(2, than=1)
    assert not metric.is_worse(1, than=1)
    assert not metric.is_worse(1, than=2)
    assert SSIM.is_worse(0.5, than=0.9)
    assert not SSIM.is_worse(0.9, than=0.5)


# Limits


@pytest.mark.parametrize(
    ("source", "margin"),
    [("replay", 0), ("ledger", 536870), ("allocator", 5368709)],
)
def test_memory_at_the_limit_passes_and_one_byte_more_fails(source: str, margin: int) -> None:
    limit = 512 * MIB + margin
    assert memory_verdict(limit, source=source).outcome is Outcome.PASS
    assert memory_verdict(limit + 1, source=source).outcome is Outcome.REGRESSION
    floor = 512 * MIB - margin
    assert memory_verdict(floor, source=source).outcome is Outcome.PASS
    assert memory_verdict(floor - 1, source=source).outcome is Outcome.IMPROVEMENT


@pytest.mark.parametrize(("source", "floor"), [("replay", 0), ("ledger", 1024), ("allocator", MIB)])
def test_a_small_peak_is_judged_by_the_floor_of_the_tolerance(source: Any, floor: int) -> None:
    small = case(entry=entry(peak_memory_bytes={"whole": 2000}))
    at_limit = judge_peak_memory(small, {"whole": 2000 + floor}, source)
    above = judge_peak_memory(small, {"whole": 2001 + floor}, source)
    assert (at_limit.outcome, above.outcome) == (Outcome.PASS, Outcome.REGRESSION)


def test_a_hungrier_component_is_seen_behind_an_unchanged_whole() -> None:
    verdict = memory_verdict(512 * MIB, denoiser=510 * MIB)
    assert verdict.outcome is Outcome.REGRESSION
    assert "peak memory (denoiser)" in verdict.sentence


def test_a_component_that_vanished_or_is_new_does_not_pass() -> None:
    vanished = judge_peak_memory(case(), {"whole": 512 * MIB}, "ledger")
    assert vanished.outcome is Outcome.REGRESSION
    assert "'denoiser' was not measured" in vanished.sentence
    new = memory_verdict(512 * MIB, vae=MIB)
    assert new.outcome is Outcome.NO_BASELINE
    assert "'vae' has no baseline" in new.sentence


def test_absolute_latency_at_the_limit_passes_and_beyond_it_fails() -> None:
    limit = 100.0 * (1 + ABSOLUTE_TOLERANCE)
    assert judge_absolute_latency(case(), limit).outcome is Outcome.PASS
    assert judge_absolute_latency(case(), limit + 1e-6).outcome is Outcome.REGRESSION


def test_likeness_at_the_limit_passes_and_below_it_fails() -> None:
    assert judge_pictures(case(), 0.98, 0.98).outcome is Outcome.PASS
    assert judge_pictures(case(), 0.98 - 1e-9, 0.98).outcome is Outcome.REGRESSION


def test_a_sure_loss_within_the_tolerance_is_no_regression_and_one_beyond_it_is() -> None:
    quiet = case(entry=entry(ratios=(1.0,) * 50))
    margin = RATIO_TOLERANCE.same.red
    inside, beyond = 1 + margin - 0.002, 1 + margin + 0.002
    assert judge_ratio(quiet, [look(inside)] * 4, RATIO_TOLERANCE).outcome not in {
        Outcome.REGRESSION,
        Outcome.IMPROVEMENT,
    }
    assert judge_ratio(quiet, [look(beyond)] * 4, RATIO_TOLERANCE).outcome is Outcome.REGRESSION


def test_equal_counters_pass_and_one_call_more_or_other_fails() -> None:
    assert counter_verdict().outcome is Outcome.PASS
    assert counter_verdict(mm=1001).outcome is Outcome.REGRESSION
    assert counter_verdict(_to_copy=1).outcome is Outcome.REGRESSION


def test_more_work_of_one_kind_is_a_regression_however_much_less_there_is_of_another() -> None:
    verdict = counter_verdict(mm=1, add=401)
    assert verdict.outcome is Outcome.REGRESSION
    assert "aten::add 400 -> 401" in verdict.sentence


def test_the_largest_changes_of_counters_come_first_and_the_rest_is_counted() -> None:
    names = {f"op{number}": 10 for number in range(9)}
    verdict = judge_counters(case(entry=entry(counters=names)), {**names, "op7": 90, "op3": 30})
    assert verdict.sentence.index("op7 10 -> 90") < verdict.sentence.index("op3 10 -> 30")
    verdict = judge_counters(case(entry=entry(counters=names)), dict.fromkeys(names, 11))
    assert "and 4 more" in verdict.sentence


# What never passes


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.0, -1.0])
def test_an_impossible_latency_or_peak_is_broken(value: float) -> None:
    assert judge_absolute_latency(case(), value).outcome is Outcome.BROKEN
    assert memory_verdict(value).outcome is Outcome.BROKEN
    assert memory_verdict(512 * MIB, denoiser=value).outcome is Outcome.BROKEN


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_ratio_that_is_no_number_is_broken(value: float) -> None:
    broken = judge_ratio(case(), [Look(value, 0.01)], RATIO_TOLERANCE)
    assert broken.outcome is Outcome.BROKEN


def test_a_ratio_of_unknown_uncertainty_does_not_pass() -> None:
    for error in (math.nan, math.inf):
        verdict = judge_ratio(case(), [Look(0.0, error)], RATIO_TOLERANCE)
        assert verdict.outcome is Outcome.INCONCLUSIVE


def test_no_look_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one look"):
        judge_ratio(case(), [], RATIO_TOLERANCE)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1.1, -2.0])
def test_an_impossible_likeness_is_broken(value: float) -> None:
    assert judge_pictures(case(), value, 0.98).outcome is Outcome.BROKEN


@pytest.mark.parametrize("value", [0.0, -0.5])
def test_no_likeness_is_a_regression(value: float) -> None:
    assert judge_pictures(case(), value, 0.98).outcome is Outcome.REGRESSION


def test_rounding_above_one_is_still_an_equal_picture() -> None:
    assert judge_pictures(case(), 1 + 1e-12, 0.98).outcome is Outcome.PASS


@pytest.mark.parametrize("counters", [{}, {"aten::mm": -1}, {"aten::mm": math.nan}])
def test_counters_that_nobody_counted_are_broken_and_no_improvement(
    counters: Mapping[str, int],
) -> None:
    assert judge_counters(case(), counters).outcome is Outcome.BROKEN


def test_an_entry_without_figures_is_no_baseline() -> None:
    empty = case(entry=entry(counters={}, peak_memory_bytes={}))
    assert judge_counters(empty, {}).outcome is Outcome.NO_BASELINE
    assert judge_counters(empty, {"aten::mm": 1}).outcome is Outcome.NO_BASELINE
    assert judge_peak_memory(empty, {}, "ledger").outcome is Outcome.NO_BASELINE


def test_without_an_entry_only_pictures_are_judged() -> None:
    new = case(entry=None)
    verdicts = [
        judge_ratio(new, [look(1.0)], RATIO_TOLERANCE),
        judge_absolute_latency(new, 100.0),
        judge_peak_memory(new, {"whole": 1}, "ledger"),
        judge_counters(new, {"aten::mm": 1}),
    ]
    for verdict in verdicts:
        assert verdict.outcome is Outcome.NO_BASELINE
        assert verdict.outcome.is_red(strict=False)
        assert f'nox -s refresh -- -k "[{SCENARIO}]"' in verdict.sentence
    assert judge_pictures(new, 0.99, 0.98).outcome is Outcome.PASS
    assert judge_pictures(new, 0.9, 0.98).outcome is Outcome.REGRESSION


@WIDE
@given(
    ratio=st.floats(0.2, 5),
    spread=st.floats(0.0, 1.0),
    standard_error=st.floats(0.0, 1.0),
    looks=st.integers(1, MAX_LOOKS),
)
def test_a_ratio_passes_only_where_the_loss_is_excluded(
    ratio: float, spread: float, standard_error: float, looks: int
) -> None:
    stored = entry(ratios=tuple(math.exp(spread * step) for step in (-1, -0.5, 0, 0.5, 1)))
    verdict = judge_ratio(
        case(entry=stored), [Look(math.log(ratio), standard_error)] * looks, RATIO_TOLERANCE
    )
    if verdict.outcome is Outcome.PASS:
        assert ratio < 1 + RATIO_TOLERANCE.same.excluded
    if verdict.outcome is Outcome.REGRESSION:
        assert ratio > 1 + RATIO_TOLERANCE.same.red
    if verdict.outcome is Outcome.IMPROVEMENT:
        assert ratio < 1 / (1 + RATIO_TOLERANCE.same.red)


@pytest.mark.parametrize("looks", range(1, MAX_LOOKS + 1))
def test_huge_noise_is_inconclusive_and_never_a_pass(looks: int) -> None:
    noisy = case(entry=entry(ratios=(0.6, 0.8, 1.0, 1.25, 1.67)))
    between = judge_ratio(noisy, [look(1.0)] * looks, RATIO_TOLERANCE)
    within = judge_ratio(case(), [look(1.0, standard_error=0.5)] * looks, RATIO_TOLERANCE)
    assert between.outcome is within.outcome is Outcome.INCONCLUSIVE
    assert "cannot be excluded" in between.sentence


# Other hardware


def test_a_loss_that_is_red_on_the_same_hardware_may_be_the_processor_s_elsewhere() -> None:
    assert ratio_verdict(1.3).outcome is Outcome.REGRESSION
    elsewhere = case(same_hardware=False)
    assert ratio_verdict(1.3, on=elsewhere).outcome is Outcome.PASS
    assert ratio_verdict(2.0, on=elsewhere).outcome is Outcome.REGRESSION


def test_absolute_latency_is_not_judged_elsewhere_and_says_how_to_change_that() -> None:
    verdict = judge_absolute_latency(case(same_hardware=False), 10_000.0)
    assert verdict.outcome is Outcome.UNSUPPORTED
    assert "other hardware" in verdict.sentence
    assert "nox -s refresh" in verdict.sentence


def test_half_precision_is_not_judged_on_other_instruction_sets() -> None:
    verdict = ratio_verdict(9.0, on=case(same_hardware=False, ratio_is_comparable=False))
    assert verdict.outcome is Outcome.UNSUPPORTED


@pytest.mark.parametrize("same_hardware", [True, False])
def test_memory_counters_and_pictures_are_judged_on_every_machine(same_hardware: bool) -> None:
    here = case(same_hardware=same_hardware)
    more = {"whole": 600 * MIB, "denoiser": 500 * MIB}
    assert judge_peak_memory(here, more, "ledger").outcome is Outcome.REGRESSION
    assert judge_counters(here, {"aten::mm": 9999}).outcome is Outcome.REGRESSION
    assert judge_pictures(here, 0.5, 0.9).outcome is Outcome.REGRESSION


@pytest.mark.parametrize("tolerance", [RATIO_TOLERANCE, YARDSTICK_TOLERANCE])
def test_every_tolerance_is_wider_elsewhere_and_has_a_reason(tolerance: Tolerance) -> None:
    for margin in (tolerance.same, tolerance.elsewhere):
        assert 0 < margin.red <= margin.excluded
    assert tolerance.same.red < tolerance.elsewhere.red
    assert tolerance.same.excluded < tolerance.elsewhere.excluded
    assert len(tolerance.reason) > 20


# Sentences


@pytest.mark.parametrize(
    ("verdict", "parts"),
    [
        (lambda: ratio_verdict(1.5), ["x1.500", "+50.0 %", "x1.020", "1 process"]),
        (lambda: memory_verdict(600 * MIB), ["600.00 MiB", "+17.2 %", "512.00 MiB", "512.51 MiB"]),
        (lambda: counter_verdict(mm=1001), ["aten::mm 1,000 -> 1,001"]),
        (lambda: judge_absolute_latency(case(), 250.0), ["250 ms", "+150.0 %", "200 ms"]),
    ],
)
def test_a_red_sentence_has_scenario_figures_limit_suspects_and_the_command(
    verdict: Callable[[], Verdict], parts: list[str]
) -> None:
    sentence = verdict().sentence
    assert sentence.startswith(f"{SCENARIO}: ")
    for part in parts:
        assert part in sentence
    assert "changed since the baseline: torch 2.12.0 -> 2.13.0" in sentence
    assert f'accept it with: nox -s refresh -- -k "[{SCENARIO}]" --perf-reason' in sentence
    assert "\n" not in sentence


def test_a_wrong_picture_names_the_suspects_and_no_way_to_accept_it() -> None:
    sentence = judge_pictures(case(), 0.5, 0.98).sentence
    for part in (SCENARIO, "0.5000", "limit 0.9800", "baseline has 0.9950", "torch 2.12.0"):
        assert part in sentence
    assert "refresh" not in sentence


def test_an_improvement_names_the_stale_baseline() -> None:
    assert "the baseline is stale, renew it with: nox" in counter_verdict(mm=1).sentence


def test_figures_stand_in_the_verdict_as_numbers() -> None:
    verdict = memory_verdict(600 * MIB)
    assert verdict.measured == 600 * MIB
    assert verdict.baseline == 512 * MIB
    assert verdict.limit == pytest.approx(512 * MIB * 1.001)


def test_software_changes_name_what_came_and_went() -> None:
    assert software_changes({"a": "1", "b": "1", "c": "1"}, {"a": "2", "b": "1", "d": "3"}) == [
        "a 1 -> 2",
        "c 1 -> absent",
        "d absent -> 3",
    ]
    unchanged = replace(case(), software=SOFTWARE)
    assert "no package version" in unchanged.suspects


# Outcomes


def test_the_gravest_verdict_speaks_and_the_first_among_equals() -> None:
    verdicts = [Verdict("s", str(n), outcome, "") for n, outcome in enumerate(Outcome)]
    assert worst(verdicts).outcome is Outcome.BROKEN
    twins = [Verdict("s", name, Outcome.PASS, "") for name in ("first", "second")]
    assert worst(twins).metric == "first"


@pytest.mark.parametrize("outcome", Outcome)
def test_red_is_what_fails_and_strict_adds_the_undecided_and_the_stale(outcome: Outcome) -> None:
    red = {Outcome.REGRESSION, Outcome.NO_BASELINE, Outcome.NOT_ACTIVE, Outcome.BROKEN}
    assert outcome.is_red(strict=False) is (outcome in red)
    strict = red | {Outcome.INCONCLUSIVE, Outcome.IMPROVEMENT}
    assert outcome.is_red(strict=True) is (outcome in strict)


# Error rates, by simulation of a whole judgement: look again until it decides


PROCESSES = 10
OTHERS = 11
"""Processes of a baseline, and further scenarios beside it, each with a spread of its own."""


def _outcomes(slow_down: float, deviation: float, seed: int, comparisons: int = 1) -> list[Outcome]:
    generator = np.random.default_rng(seed)
    scales = deviation * np.exp(generator.uniform(-0.5, 0.5, OTHERS))
    outcomes = []
    for _ in range(SIMULATIONS):
        stored = entry(ratios=tuple(np.exp(generator.normal(0, deviation, PROCESSES))))
        others = spread_of([list(generator.normal(0, scale, PROCESSES)) for scale in scales])
        judged = case(entry=stored, others=others, comparisons=comparisons)
        looks: list[Look] = []
        outcome = Outcome.INCONCLUSIVE
        while outcome is Outcome.INCONCLUSIVE and len(looks) < MAX_LOOKS:
            looks.append(Look(math.log1p(slow_down) + generator.normal(0, deviation), 0.0))
            outcome = judge_ratio(judged, looks, RATIO_TOLERANCE).outcome
        outcomes.append(outcome)
    return outcomes


@pytest.mark.parametrize("deviation", [0.02, 0.10, 0.30])
def test_unchanged_code_is_red_in_at_most_half_a_percent_of_comparisons(deviation: float) -> None:
    expected = SIMULATIONS * REGRESSION_ERROR
    red = _outcomes(0.0, deviation, seed=1).count(Outcome.REGRESSION)
    assert red <= expected + 3 * math.sqrt(expected)


def test_more_scenarios_share_the_error_of_one_run() -> None:
    assert regression_error(1) * MAX_LOOKS == REGRESSION_ERROR
    for comparisons in (0, 1, 10, 16, 300):
        each = regression_error(comparisons) * MAX_LOOKS
        assert each <= REGRESSION_ERROR
        assert each * comparisons <= RUN_ERROR * (1 + 1e-12)
    strict = judge_ratio(case(comparisons=1000), [look(1.045)], RATIO_TOLERANCE)
    alone = judge_ratio(case(), [look(1.045)], RATIO_TOLERANCE)
    assert (alone.outcome, strict.outcome) == (Outcome.INCONCLUSIVE, Outcome.INCONCLUSIVE)
    sure = entry(ratios=(0.999, 1.0, 1.001) * 20)
    assert judge_ratio(case(entry=sure), [look(1.06)], RATIO_TOLERANCE).outcome is (
        Outcome.REGRESSION
    )
    of_many = case(entry=sure, comparisons=10**7)
    assert judge_ratio(of_many, [look(1.06)], RATIO_TOLERANCE).outcome is Outcome.INCONCLUSIVE


def test_unchanged_code_on_a_quiet_machine_passes() -> None:
    outcomes = _outcomes(0.0, 0.015, seed=2)
    assert outcomes.count(Outcome.REGRESSION) <= SIMULATIONS * REGRESSION_ERROR
    assert outcomes.count(Outcome.PASS) >= 0.98 * SIMULATIONS


def test_a_slow_down_of_30_percent_is_always_red() -> None:
    assert set(_outcomes(0.30, 0.02, seed=3)) == {Outcome.REGRESSION}


@pytest.mark.parametrize("deviation", [0.02, 0.05])
def test_a_loss_that_a_pass_excludes_seldom_passes(deviation: float) -> None:
    """Each look may pass it in 5 % of cases; looking again adds to that, and is bounded here."""
    passed = _outcomes(RATIO_TOLERANCE.same.excluded, deviation, seed=4).count(Outcome.PASS)
    assert passed <= 0.18 * SIMULATIONS
    larger = _outcomes(2 * RATIO_TOLERANCE.same.excluded, deviation, seed=5).count(Outcome.PASS)
    assert larger <= 0.06 * SIMULATIONS


# What was timed


def test_a_ratio_of_another_call_is_no_baseline_and_says_of_which() -> None:
    stored = entry()
    timed = replace(stored, recorded={**stored.recorded, "timing": {"steps": 20}})
    verdict = judge_ratio(case(entry=timed, timing={"steps": 3}), [look(1.0)], RATIO_TOLERANCE)
    assert verdict.outcome is Outcome.NO_BASELINE
    assert "another call (steps 20; now steps 3)" in verdict.sentence
    assert "accept it with" in verdict.sentence
    unsaid = judge_ratio(case(timing={"steps": 3}), [look(1.0)], RATIO_TOLERANCE)
    assert "(nothing said; now steps 3)" in unsaid.sentence
    same = case(entry=timed, timing={"steps": 20})
    assert judge_ratio(same, [look(1.0)] * 3, RATIO_TOLERANCE).outcome is Outcome.PASS
