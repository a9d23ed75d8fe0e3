"""Budgets and tolerances of one's own: what holds, what does not, and what was not judged."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fixtures.metrics import host_calls, images, operations, peak_memory
from fixtures.metrics.images import SSIM
from fixtures.metrics.latency_verdicts import LATENCY, judge_latency
from fixtures.metrics.metric import Metric
from fixtures.metrics.peak_memory import PEAK_MEMORY
from fixtures.records.counts import LAUNCHES, Counts
from fixtures.records.host_work import SYNCHRONIZE, HostWork
from fixtures.records.outcome import Outcome, Verdict
from fixtures.records.run import WHOLE
from fixtures.report.columns import what_changed
from fixtures.verdicts.budgets import account, judge_budgets
from fixtures.verdicts.own_limits import OwnLimit, OwnLimits
from fixtures.verdicts.quantity import Quantity
from tests.metrics.cases import ELSEWHERE, SCENARIO, case, timed
from tests.support.runs import MIB, counts, entry, host_work, run_record, scenario_record, timing

WHERE = "limits.toml, [[budget]] 1"


TOLERANCE = "limits.toml, [[tolerance]] 1"


def budgets(quantity: str, value: float) -> OwnLimits:
    return OwnLimits(None, (OwnLimit("budget", WHERE, "*", "*", quantity, value),))


def tolerance(quantity: str, value: float) -> OwnLimits:
    return OwnLimits(None, (OwnLimit("tolerance", TOLERANCE, "*", "*", quantity, value),))


MEASURED: dict[str, Any] = {
    "peak_bytes": 512 * MIB,
    "host_work": host_work(),
    "counts": counts(mm=1000, add=400),
    "ssim": 0.995,
}


def judged(metric: Metric, own: OwnLimits, **figures: Any) -> Verdict:
    """The verdict on the budget, without a baseline."""
    record = scenario_record("fp16", **{**MEASURED, **figures})
    found = metric.judge(case(entry=None, own=own, min_ssim=0.5), record)
    (verdict,) = (one for one in found if one.budget)
    assert verdict.budget == WHERE
    return verdict


@pytest.mark.parametrize(
    ("metric", "quantity", "holds", "fails", "sentence"),
    [
        (
            *(peak_memory.METRIC, "peak memory", 512 * MIB, 500 * MIB),
            "peak memory 512.00 MiB is above your budget of 500.00 MiB",
        ),
        (
            *(peak_memory.METRIC, "peak memory", 512 * MIB, 512 * MIB - 1),
            "peak memory 536,870,912 bytes is above your budget of 536,870,911 bytes",
        ),
        (
            *(host_calls.METRIC, "host calls (a step)", 600, 599),
            "host calls (a step) 600 are above your budget of 599",
        ),
        (
            *(operations.METRIC, "operations", 1400, 1399),
            "operations 1,400 are above your budget of 1,399",
        ),
        (images.METRIC, "SSIM", 0.995, 0.999, "SSIM 0.9950 is below your minimum of 0.9990"),
    ],
)
def test_a_figure_at_its_budget_holds_and_one_beyond_fails_without_a_baseline(
    metric: Metric, quantity: str, holds: float, fails: float, sentence: str
) -> None:
    assert judged(metric, budgets(quantity, holds)).outcome is Outcome.PASS
    verdict = judged(metric, budgets(quantity, fails))
    assert verdict.outcome is Outcome.REGRESSION
    assert verdict.sentence == f"{SCENARIO}: {sentence} ({WHERE})"
    assert (verdict.metric, verdict.baseline, verdict.limit) == (quantity, None, fails)
    named = what_changed(scenario_record("fp16", verdicts=[verdict]))
    assert named.startswith(f"{quantity} ")
    assert "(your " in named


@pytest.mark.parametrize("quantity", [PEAK_MEMORY, SSIM])
def test_what_is_no_number_does_not_hold_and_nothing_at_all_is_a_figure(quantity: Quantity) -> None:
    (no_number,), (nothing,) = (
        judge_budgets(case(own=budgets(quantity.name, 0.5)), quantity, figure, "")
        for figure in (math.nan, 0.0)
    )
    assert no_number.outcome is Outcome.REGRESSION
    assert nothing.outcome is (Outcome.PASS if quantity is PEAK_MEMORY else Outcome.REGRESSION)


@pytest.mark.parametrize(
    ("metric", "quantity", "figures"),
    [
        (peak_memory.METRIC, "peak memory", {"peak_bytes": None}),
        (host_calls.METRIC, "host calls (a step)", {"host_work": HostWork()}),
        (operations.METRIC, "operations", {"counts": Counts()}),
        (operations.METRIC, "operations", {"counts": Counts({LAUNCHES: 5})}),
        (images.METRIC, "SSIM", {"ssim": None}),
    ],
)
def test_without_a_figure_a_budget_is_not_judged(
    metric: Metric, quantity: str, figures: dict[str, Any]
) -> None:
    verdict = judged(metric, budgets(quantity, 1), **figures)
    assert verdict.outcome is Outcome.NOT_JUDGED
    assert verdict.detail


def test_where_nothing_is_drawn_a_minimum_is_not_judged() -> None:
    on = case(entry=None, own=budgets(SSIM.name, 0.5), no_images="draws none")
    _, verdict = images.METRIC.judge(on, scenario_record("fp16"))
    assert (verdict.outcome, verdict.budget) == (Outcome.NOT_JUDGED, WHERE)
    assert verdict.detail == "draws none"


# Latency


def latency_of(budget_ms: float, *judged_ms: float, steady: bool = False) -> Verdict:
    on = case(entry=None, own=budgets("latency", budget_ms), steady_clock=steady)
    *_, verdict = judge_latency(on, [timing(judged_ms=one) for one in judged_ms])
    assert verdict.metric == LATENCY.name
    return verdict


@pytest.mark.parametrize(
    ("budget_ms", "times", "steady", "outcome"),
    [
        (200, (100,), False, Outcome.PASS),
        (110, (100,), False, Outcome.INCONCLUSIVE),
        (90, (100,), False, Outcome.INCONCLUSIVE),
        (50, (100,), False, Outcome.REGRESSION),
        (110, (100,) * 12, False, Outcome.PASS),
        (90, (100,) * 12, False, Outcome.REGRESSION),
        (99, (100,) * 12, False, Outcome.INCONCLUSIVE),
        (110, (60, 80, 100, 125, 167), False, Outcome.INCONCLUSIVE),
        (105, (100,), True, Outcome.PASS),
        (90, (100,), True, Outcome.REGRESSION),
    ],
)
def test_a_latency_fails_only_beyond_doubt(
    budget_ms: float, times: tuple[float, ...], steady: bool, outcome: Outcome
) -> None:
    assert latency_of(budget_ms, *times, steady=steady).outcome is outcome


def test_a_latency_is_said_with_the_interval_that_decides() -> None:
    verdict = latency_of(50, 100)
    assert verdict.sentence.startswith(f"{SCENARIO}: latency 100 ms [")
    assert verdict.sentence.endswith(f", 1 process] is above your budget of 50 ms ({WHERE})")
    assert verdict.measured == pytest.approx(100)
    assert "neither clearly within nor clearly above" in latency_of(110, 100).sentence


# Tolerances


@pytest.mark.parametrize(
    ("share", "more", "outcome"),
    [
        (0.10, 0.10, Outcome.PASS),
        (0.10, 0.11, Outcome.REGRESSION),
        (0.0, 0.0, Outcome.PASS),
        (0.0, 1e-7, Outcome.REGRESSION),
    ],
)
def test_a_tolerance_takes_the_place_of_the_suite_s(
    share: float, more: float, outcome: Outcome
) -> None:
    peak = case(
        own=tolerance("peak memory", share), entry=entry(component_peak_bytes={WHOLE: 10**9})
    )
    verdict = peak_memory.judge_peak_memory(peak, {WHOLE: round(10**9 * (1 + more))}, "allocator")
    assert verdict.outcome is outcome
    assert ", yours: limits.toml, [[tolerance]] 1)" in verdict.sentence


def waiting(a_step: int, waits: int) -> HostWork:
    """With so many calls in each step, and so many waits in the call."""
    work = host_work(a_step=a_step)
    return replace(work, call=replace(work.call, runtime={SYNCHRONIZE: waits}))


@pytest.mark.parametrize(("calls", "waits", "fails"), [(660, 100, 0), (661, 100, 1), (660, 101, 1)])
def test_host_calls_are_held_to_the_tolerance_and_the_runtime_exactly(
    calls: int, waits: int, fails: bool
) -> None:
    on = case(own=tolerance("host calls", 0.10), entry=entry(host_work=waiting(600, 100)))
    verdict = host_calls.judge_host_calls(on, waiting(calls, waits))
    assert verdict.outcome is (Outcome.REGRESSION if fails else Outcome.PASS)
    assert ("(limit 10 %, yours: limits.toml" in verdict.sentence) == fails


@pytest.mark.parametrize("steady", [False, True])
def test_latency_is_held_to_the_tolerance_on_every_clock(steady: bool) -> None:
    slower = [timing(1.1, judged_ms=110.0)] * 12
    wide, suite = (
        judge_latency(case(own=own, steady_clock=steady), slower)
        for own in (tolerance("latency", 0.15), OwnLimits())
    )
    assert {one.outcome for one in wide} == {Outcome.PASS}
    assert Outcome.REGRESSION in {one.outcome for one in suite}
    assert all("yours: limits.toml" in one.sentence for one in wide[: 1 + steady])


def test_a_pass_rules_out_half_as_much_again_as_the_tolerance() -> None:
    certain = timed([1.0] * 60)
    for share, loss, outcome in ((0.08, 0.075, Outcome.PASS), (0.02, 0.015, Outcome.INCONCLUSIVE)):
        on = case(entry=certain, own=tolerance("latency", share))
        (ratio, _) = judge_latency(on, [timing(1 + loss)])
        assert ratio.outcome is outcome
        assert ratio.limit == pytest.approx(1 + share)


@pytest.mark.parametrize(
    ("share", "limit", "whose"),
    [(0.15, 1.40, ""), (0.50, 1.50, ", yours: limits.toml, [[tolerance]] 1")],
)
def test_elsewhere_only_a_wider_tolerance_is_ones_own(
    share: float, limit: float, whose: str
) -> None:
    on = case(entry=timed([1.0] * 60), own=tolerance("latency", share), hardware=ELSEWHERE)
    ratio, _ = judge_latency(on, [timing()])
    assert ratio.limit == pytest.approx(limit)
    assert f"{whose}, by other processors" in ratio.sentence
    assert ("yours" in ratio.sentence) == bool(whose)


# What became of a file


def test_every_limit_is_accounted_for() -> None:
    own = OwnLimits(
        Path("limits.toml"),
        (
            OwnLimit("budget", WHERE, "*-fp*", "cpu", "SSIM", 1),
            OwnLimit("budget", WHERE, "*-fp*", "cpu", "latency", 1),
            OwnLimit("tolerance", TOLERANCE, "{x}*", "*", "latency", 0.1),
            OwnLimit("tolerance", "limits.toml, [[tolerance]] 2", "*", "*", "latency", 0.1),
        ),
    )
    run = run_record(
        scenario_record("fp16", verdicts=[judged(images.METRIC, budgets("SSIM", 0.999))]),
        scenario_record("fp32", unsupported="no"),
    )
    counted = "limits of limits.toml: 0 met, 1 not met, 0 undecided, "
    assert account(own, ("cpu",), run, strict=False) == (
        f"{counted}2 not judged; latency of {SCENARIO}: it was not measured; "
        "limits.toml, [[tolerance]] 1 ('{x}*' on '*') selects no scenario that ran"
    )
    assert "2 ('*' on '*')" not in account(own, ("cpu",), run, strict=False)
    elsewhere = account(own, ("simulated",), run, strict=False)
    assert f"3 not judged; {WHERE} ('*-fp*' on 'cpu') selects no scenario" in elsewhere
