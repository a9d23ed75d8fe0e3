"""A gain too large to be believed fails and says so; a smaller one, or one between releases, not.

It is how a measurement looks that no longer sees what it should, and a baseline that was edited.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fixtures.metrics.host_calls import judge_host_calls
from fixtures.metrics.latency_tolerances import (
    CONTROL_TOLERANCE,
    FP32_TOLERANCE,
    RATIO_TOLERANCE,
    SIDE_BY_SIDE,
)
from fixtures.metrics.latency_verdicts import judge_absolute_latency, judge_change, judge_ratio
from fixtures.metrics.operations import COUNTS, judge_counts, judge_total
from fixtures.metrics.peak_memory import MEMORY_TOLERANCES, PEAK_MEMORY, judge_peak_memory
from fixtures.records.counts import BYTES_MOVED, FLOPS, LAUNCHES, OPERATIONS, SYNCS, Counts
from fixtures.records.host_work import EMPTY_CACHE, HostCalls, HostWork
from fixtures.records.outcome import Outcome, Verdict
from fixtures.records.run import WHOLE
from fixtures.verdicts.case import FEW_CALLS, IMPLAUSIBLE_GAIN, SideCase
from fixtures.verdicts.limits import Tolerance
from tests.metrics.cases import ELSEWHERE, NEWER, SCENARIO, case, timed
from tests.support.runs import HARDWARE, MIB, entry, host_work, sample, timing

SIDES = SideCase(SCENARIO, entry(), NEWER)
SEEN = Counts(
    totals={OPERATIONS: 1400, FLOPS: 10**12, BYTES_MOVED: 2**30, SYNCS: 3, LAUNCHES: 900},
    operations={"aten::mm": 1000, "aten::add": 400},
    compute_dtypes={"float32": 1000, "float16": 8},
    sync_places={"diffusers/a.py:step (item)": 3},
    copy_places={"diffusers/a.py:step (to the device)": 2},
    copy_bytes={"diffusers/a.py:step (to the device)": 2**20},
)
HOST = host_work(a_step=600, torch_a_step=5000, once=300)


def is_doubted(verdict: Verdict) -> bool:
    """Whether it fails as implausible, with both explanations and the command that accepts it."""
    if verdict.outcome is not Outcome.BROKEN:
        assert verdict.outcome is Outcome.IMPROVEMENT, verdict.sentence
        assert "implausible" not in verdict.sentence
        assert "the baseline is stale, renew it with: nox -s refresh" in verdict.sentence
        return False
    assert "that is implausible: the measurement went blind, or the change is real" in (
        verdict.sentence
    )
    assert "changed since the baseline: torch 2.12.0 -> 2.13.0" in verdict.sentence
    command = f'nox -s refresh -- -k "[{SCENARIO}]" --perf-reason "WHY"'
    assert verdict.sentence.endswith(f"; if it is real, accept it with: {command}")
    assert verdict.measured is not None
    return True


# Peak memory


@pytest.mark.parametrize(
    ("peaks", "doubted"),
    [
        ({WHOLE: 256 * MIB, "denoiser": 500 * MIB}, True),  # no resident tensors: half the peak
        ({WHOLE: 256 * MIB, "denoiser": 250 * MIB}, True),  # every peak of the baseline doubled
        ({WHOLE: 512 * MIB, "denoiser": 349 * MIB}, True),  # a component alone
        ({WHOLE: 1, "denoiser": 1}, True),
        ({WHOLE: 359 * MIB, "denoiser": 351 * MIB}, False),
        ({WHOLE: 503 * MIB, "denoiser": 500 * MIB}, False),
    ],
)
def test_a_peak_that_fell_too_far_is_doubted(peaks: dict[str, int], doubted: bool) -> None:
    for source in MEMORY_TOLERANCES:
        assert is_doubted(judge_peak_memory(case(), peaks, source)) is doubted


def test_the_limit_of_a_gain_is_its_own() -> None:
    on = case(entry=entry(component_peak_bytes={WHOLE: 1000}))
    limit = round(1000 * (1 - IMPLAUSIBLE_GAIN))
    assert not is_doubted(judge_peak_memory(on, {WHOLE: limit}, "replay"))
    assert is_doubted(judge_peak_memory(on, {WHOLE: limit - 1}, "replay"))


def test_a_component_that_grew_does_not_hide_one_that_vanished() -> None:
    peaks = {WHOLE: 100 * MIB, "denoiser": 600 * MIB}
    assert is_doubted(judge_peak_memory(case(), peaks, "ledger"))


# Counts


@pytest.mark.parametrize(
    ("change", "doubted"),
    [
        # A blind view: of the kinds, the dtypes, the places, or of one total.
        ({"operations": {}}, True),
        ({"compute_dtypes": {}}, True),
        *(({view: {}}, True) for view in ("sync_places", "copy_places", "copy_bytes")),
        ({"operations": {"aten::mm": 500, "aten::add": 400}}, True),
        *(({"totals": {**SEEN.totals, name: 0}}, True) for name in SEEN.totals),
        *(
            ({"totals": {**SEEN.totals, name: count // 2}}, True)
            for name, count in SEEN.totals.items()
            if name != SYNCS
        ),
        # What releases do: one kind less, one wait instead of three, a few per cent.
        ({"operations": {"aten::mm": 1000}}, False),
        ({"totals": {**SEEN.totals, SYNCS: 1}}, False),
        ({"compute_dtypes": {"float32": 1000}}, False),
        ({"totals": {**SEEN.totals, BYTES_MOVED: round(2**30 * 0.71)}}, False),
    ],
)
def test_a_sum_of_counts_that_fell_too_far_is_doubted(
    change: dict[str, Any], doubted: bool
) -> None:
    on = case(entry=entry(counts=SEEN))
    assert is_doubted(judge_counts(on, replace(SEEN, **change))) is doubted


def test_a_baseline_whose_every_count_was_doubled_is_doubted() -> None:
    doubled = Counts(
        *({name: 2 * count for name, count in view.items()} for view in vars(SEEN).values())
    )
    assert is_doubted(judge_counts(case(entry=entry(counts=doubled)), SEEN))


@pytest.mark.parametrize("few", [1, 3, FEW_CALLS])
def test_few_calls_may_go_whatever_their_share_but_not_the_last(few: int) -> None:
    on = case(entry=entry(counts=Counts({SYNCS: few + 1, OPERATIONS: 10**6})))
    assert not is_doubted(judge_counts(on, Counts({SYNCS: 1, OPERATIONS: 10**6})))
    assert is_doubted(judge_counts(on, Counts({SYNCS: 0, OPERATIONS: 10**6})))
    assert is_doubted(judge_counts(on, Counts({OPERATIONS: 10**6})))


# Host calls


def _runtime(work: HostWork, a_step: int) -> HostWork:
    def with_runtime(calls: HostCalls, count: int) -> HostCalls:
        return replace(calls, runtime={EMPTY_CACHE: count} if count else {})

    return replace(
        work,
        step=with_runtime(work.step, a_step),
        call=with_runtime(work.call, work.steps * a_step),
    )


@pytest.mark.parametrize(
    ("before", "now", "doubted"),
    [
        (HOST, host_work(a_step=300, torch_a_step=5000, once=300), True),
        (HOST, host_work(a_step=600, torch_a_step=3000, once=300), True),
        (HOST, host_work(a_step=600, torch_a_step=0, once=300), True),
        (HOST, replace(HOST, step=HostCalls()), True),
        (_runtime(HOST, 3), HOST, True),
        (HOST, host_work(a_step=430, torch_a_step=5000, once=300), False),
        (_runtime(HOST, 3), _runtime(HOST, 1), False),
    ],
)
def test_host_calls_that_fell_too_far_are_doubted(
    before: HostWork, now: HostWork, doubted: bool
) -> None:
    on = case(entry=entry(host_work=before))
    assert is_doubted(judge_host_calls(on, now)) is doubted


# Latency


@pytest.mark.parametrize("tolerance", [RATIO_TOLERANCE, FP32_TOLERANCE, CONTROL_TOLERANCE])
@pytest.mark.parametrize("hardware", [HARDWARE, ELSEWHERE])
def test_more_than_twice_as_fast_beyond_the_tolerance_is_doubted(
    tolerance: Tolerance, hardware: dict[str, Any]
) -> None:
    on = case(entry=timed((1.0,) * 60), tolerance=tolerance, hardware=hardware)
    unchanged = judge_ratio(on, [sample(1.0)] * 12)
    assert unchanged.limit is not None
    allowed = unchanged.limit - 1
    held = tolerance.elsewhere if hardware == ELSEWHERE else tolerance.margin.regression
    assert allowed == pytest.approx(held)
    limit = 1 / (2 * (1 + allowed))
    assert is_doubted(judge_ratio(on, [sample(limit - 0.001)] * 12))
    assert not is_doubted(judge_ratio(on, [sample(limit + 0.001)] * 12))


@pytest.mark.parametrize("edited", [1000.0, 3.0])
def test_a_ratio_that_was_edited_in_the_baseline_is_doubted_at_the_first_sample(
    edited: float,
) -> None:
    ratios = tuple(edited * one for one in (0.98, 0.99, 1.0, 1.01, 1.02))
    assert is_doubted(judge_ratio(case(entry=timed(ratios)), [sample(1.0)]))


@pytest.mark.parametrize(("steady_clock", "limit_ms"), [(True, 49.0), (False, 25.0)])
def test_a_time_that_no_machine_takes_is_doubted(steady_clock: bool, limit_ms: float) -> None:
    on = case(entry=timed((1.0,) * 60), steady_clock=steady_clock)

    def judged(judged_ms: float) -> Verdict:
        return judge_absolute_latency(on, [timing(judged_ms=judged_ms)] * 12)

    for implausible in (limit_ms * 0.99, 0.01):
        assert is_doubted(judged(implausible))
    above = judged(limit_ms * 1.02)
    assert above.outcome is (Outcome.IMPROVEMENT if steady_clock else Outcome.PASS)


# Between releases


@pytest.mark.parametrize(
    "verdict",
    [
        judge_peak_memory(SIDES, {WHOLE: MIB, "denoiser": MIB}, "ledger"),
        judge_total(SIDES, OPERATIONS, Counts({OPERATIONS: 1}), 0.0),
        judge_change(SIDES, [sample(0.1)] * 3),
        judge_counts(SIDES, Counts({OPERATIONS: 1})),
    ],
    ids=lambda verdict: str(verdict.metric),
)
def test_between_two_releases_any_gain_is_an_improvement(verdict: Verdict) -> None:
    assert verdict.outcome is Outcome.IMPROVEMENT


# No figure at all


@pytest.mark.parametrize("metric", [COUNTS, PEAK_MEMORY])
def test_no_figure_where_the_entry_has_one_fails_with_the_reason(metric: Any) -> None:
    verdict = case().unmeasured(metric, "no tensor was seen", stored={"some": 1})
    assert verdict.outcome is Outcome.BROKEN
    assert f"its {metric.name} cannot be judged: no tensor was seen, but" in verdict.sentence
    neither = case().unmeasured(metric, "no tensor was seen", stored={})
    assert neither.outcome is Outcome.NOT_JUDGED
    assert neither.detail == "no tensor was seen"


def test_the_limits_of_a_gain_are_wider_than_any_tolerance() -> None:
    assert SIDE_BY_SIDE.pass_bound < IMPLAUSIBLE_GAIN < 0.5
