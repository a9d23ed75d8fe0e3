"""Which change of an exact figure is a verdict between two sides, and which only informs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.metrics import host_calls, operations, peak_memory
from fixtures.metrics.operations import judge_total, totals
from fixtures.metrics.peak_memory import PEAK_MEMORY
from fixtures.records.counts import (
    BYTES_MOVED,
    COPIES_TO_HOST,
    FLOPS,
    OPERATIONS,
    SYNCS,
    TOTALS,
    Counts,
)
from fixtures.records.host_work import EMPTY_CACHE, LIBRARIES, READ_BYTES, RUNTIME
from fixtures.records.outcome import Outcome
from fixtures.records.units import GIB, MIB
from fixtures.verdicts.case import SideCase
from fixtures.verdicts.limits import Limits
from tests.support.runs import entry

STEPS = 3
MATERIAL = Limits(steps=STEPS)
THRESHOLDS = {
    PEAK_MEMORY.name: peak_memory.THRESHOLD,
    **{name: operations.threshold_of(name) for name in (*TOTALS, "compute float32")},
}


@pytest.mark.parametrize(
    ("name", "base", "limit"),
    [
        (PEAK_MEMORY.name, 10 * GIB, 0.005 * 10 * GIB),
        (PEAK_MEMORY.name, 1 * GIB, 8 * MIB),
        (PEAK_MEMORY.name, 30 * MIB, 0.02 * 30 * MIB),
        (BYTES_MOVED, GIB, 0.01 * GIB),
        (FLOPS, 1000, 10),
        (OPERATIONS, 5000, 50),
        ("compute float32", 0, 0),
        (SYNCS, 40, STEPS - 1),
        (COPIES_TO_HOST, 0, STEPS - 1),
    ],
)
def test_each_metric_has_the_limit_that_is_documented(name: str, base: int, limit: float) -> None:
    assert MATERIAL.of(THRESHOLDS[name], base) == pytest.approx(limit)


def test_one_wait_in_every_step_is_material_and_one_in_a_call_is_not() -> None:
    side = SideCase("sd15-fp32", entry(counts=Counts({SYNCS: 4})), {})
    limit = MATERIAL.of(THRESHOLDS[SYNCS], 4)
    outcomes = [
        judge_total(side, SYNCS, Counts({SYNCS: now}), limit).outcome
        for now in (4, 4 + STEPS - 1, 4 + STEPS, 4 - STEPS)
    ]
    assert outcomes == [Outcome.PASS, Outcome.PASS, Outcome.REGRESSION, Outcome.IMPROVEMENT]


def test_the_runtime_s_calls_are_material_in_every_step() -> None:
    assert MATERIAL.of(host_calls.threshold_of(EMPTY_CACHE), 0, 1) == 0
    assert MATERIAL.of(host_calls.threshold_of(EMPTY_CACHE), 0, STEPS) == STEPS - 1
    assert MATERIAL.of(host_calls.threshold_of(READ_BYTES), 1000, STEPS) == 10
    assert MATERIAL.of(host_calls.threshold_of(LIBRARIES), 100, 1) == 10
    assert MATERIAL.of(host_calls.threshold_of(LIBRARIES), 1000, 1) == 50


@pytest.mark.parametrize("name", [PEAK_MEMORY.name, *TOTALS])
@given(base=st.integers(0, 2**40), allowed=st.floats(0, 1))
def test_what_is_allowed_widens_every_limit_and_exact_leaves_nothing_else(
    name: str, base: int, allowed: float
) -> None:
    assert Limits(exact=True).of(THRESHOLDS[name], base) == 0
    assert Limits(allowed, exact=True).of(THRESHOLDS[name], base) == allowed * base
    assert Limits(allowed, steps=STEPS).of(THRESHOLDS[name], base) >= max(
        allowed * base, MATERIAL.of(THRESHOLDS[name], base)
    )


@pytest.mark.parametrize("name", [LIBRARIES, *RUNTIME])
def test_exact_holds_the_host_s_work_to_the_call(name: str) -> None:
    assert Limits(exact=True).of(host_calls.threshold_of(name), 1000, 1) == 0
    assert Limits(0.5, exact=True).of(host_calls.threshold_of(name), 1000, 1) == 500


@pytest.mark.parametrize(
    ("limit", "outcome"),
    [(0.0, Outcome.REGRESSION), (3.0, Outcome.REGRESSION), (4.0, Outcome.PASS)],
)
def test_operations_of_one_kind_do_not_make_up_for_another(limit: float, outcome: Outcome) -> None:
    base, head = (
        Counts({OPERATIONS: 14}, {"aten::mm": 10, "aten::add": 4}),
        Counts({OPERATIONS: 14}, {"aten::mm": 6, "aten::add": 4, "aten::clone": 4}),
    )
    assert totals(base) == totals(head)
    side = SideCase("sd15-fp32", entry(counts=base), {})
    assert judge_total(side, OPERATIONS, head, limit).outcome is outcome
