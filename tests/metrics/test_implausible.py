"""A gain too large to be believed fails and says so; a smaller one, or one between releases, not.

It is how a measurement looks that no longer sees what it should, and a baseline that was edited.
"""

from __future__ import annotations

from typing import Any

import pytest

from fixtures.metrics.case import FEW_CALLS, IMPLAUSIBLE_GAIN
from fixtures.metrics.counts import COUNTS, HOST
from fixtures.metrics.exact import ExactMetric
from fixtures.metrics.latency_tolerances import (
    CONTROL_TOLERANCE,
    FP32_TOLERANCE,
    RATIO_TOLERANCE,
    SIDE_BY_SIDE,
)
from fixtures.metrics.latency_verdicts import judge_change, judge_ratio
from fixtures.metrics.limits import Tolerance
from fixtures.metrics.peak_memory import MEMORY_TOLERANCES
from fixtures.records.counts import (
    BYTES_MOVED,
    EMPTY_CACHE,
    FLOPS,
    LAUNCHES,
    OPERATIONS,
    SYNCS,
    Counts,
)
from fixtures.records.outcome import Outcome, Verdict
from fixtures.records.run import WHOLE
from tests.metrics.cases import ELSEWHERE, SCENARIO, case, judged_peak, side_case, timed
from tests.support.counting import counted, host_calls
from tests.support.runs import HARDWARE, MIB, entry, sample, scenario_record

SIDES = side_case()
PLACE = "diffusers/a.py:step"
SEEN: dict[str, Any] = {
    "totals": {FLOPS: 10**12, BYTES_MOVED: 2**30, LAUNCHES: 900},
    "operations": {"aten::mm": 1000, "aten::add": 400},
    "compute": {"float32": 1000, "float16": 8},
    "waits": {f"{PLACE} (item)": 3},
    "copies": {f"{PLACE} (to the device)": 2},
    "copied_bytes": {f"{PLACE} (to the device)": 2**20},
}
STORED_HOST = host_calls()


def judged(metric: ExactMetric, now: Counts, stored: Counts) -> Verdict:
    on = case(entry=entry(counts=stored))
    [verdict] = metric.judge(on, scenario_record("fp16", counts=now))
    return verdict


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
        ({WHOLE: 100 * MIB, "denoiser": 600 * MIB}, True),  # hidden by one that grew
        ({WHOLE: 359 * MIB, "denoiser": 351 * MIB}, False),
    ],
)
def test_a_peak_that_fell_too_far_is_doubted(peaks: dict[str, int], doubted: bool) -> None:
    for source in MEMORY_TOLERANCES:
        assert is_doubted(judged_peak(case(), peaks, source)) is doubted


# Counts


@pytest.mark.parametrize(
    ("change", "doubted"),
    [
        # A blind view: of the kinds, the dtypes, the places, or of a total.
        *(({view: {}}, True) for view in SEEN if view != "totals"),
        *(({"totals": {**SEEN["totals"], name: 0}}, True) for name in SEEN["totals"]),
        ({"operations": {"aten::mm": 500, "aten::add": 400}}, True),
        *(
            ({"totals": {**SEEN["totals"], name: count // 2}}, True)
            for name, count in SEEN["totals"].items()
        ),
        # What releases do: one kind less, one wait instead of three, a few per cent.
        ({"operations": {"aten::mm": 1000}}, False),
        ({"waits": {f"{PLACE} (item)": 1}}, False),
        ({"compute": {"float32": 1000}}, False),
        ({"totals": {**SEEN["totals"], BYTES_MOVED: round(2**30 * 0.71)}}, False),
    ],
)
def test_a_sum_of_counts_that_fell_too_far_is_doubted(
    change: dict[str, Any], doubted: bool
) -> None:
    now = counted(**{**SEEN, **change})
    assert is_doubted(judged(COUNTS, now, counted(**SEEN))) is doubted


@pytest.mark.parametrize("few", [1, 3, FEW_CALLS])
def test_few_calls_may_go_whatever_their_share_but_not_the_last(few: int) -> None:
    stored, some, none = (counted({SYNCS: number, OPERATIONS: 10**6}) for number in (few + 1, 1, 0))
    assert not is_doubted(judged(COUNTS, some, stored))
    assert is_doubted(judged(COUNTS, none, stored))
    assert is_doubted(judged(COUNTS, counted({OPERATIONS: 10**6}), stored))


@pytest.mark.parametrize(
    ("before", "now", "doubted"),
    [
        (STORED_HOST, host_calls(a_step=300), True),
        (STORED_HOST, Counts.of(STORED_HOST.tally, host_steps=3, python="3.11"), True),
        (host_calls(runtime={EMPTY_CACHE: 3}), STORED_HOST, True),
        (STORED_HOST, host_calls(a_step=430), False),
        (host_calls(runtime={EMPTY_CACHE: 3}), host_calls(runtime={EMPTY_CACHE: 1}), False),
    ],
)
def test_host_calls_that_fell_too_far_are_doubted(
    before: Counts, now: Counts, doubted: bool
) -> None:
    assert is_doubted(judged(HOST, now, before)) is doubted


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


# Between releases


@pytest.mark.parametrize(
    "verdict",
    [
        judged_peak(SIDES, {WHOLE: MIB, "denoiser": MIB}, "ledger"),
        judge_change(SIDES, [sample(0.1)] * 3),
        *COUNTS.judge(SIDES, scenario_record("fp16", counts=counted({OPERATIONS: 1}))),
    ],
    ids=lambda verdict: str(verdict.metric),
)
def test_between_two_releases_any_gain_is_an_improvement(verdict: Verdict) -> None:
    assert verdict.outcome is Outcome.IMPROVEMENT


def test_the_limits_of_a_gain_are_wider_than_any_tolerance() -> None:
    assert SIDE_BY_SIDE.pass_bound < IMPLAUSIBLE_GAIN < 0.5
