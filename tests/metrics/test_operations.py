"""Counts: exact against a baseline, and totals of head against base's."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from fixtures.metrics.operations import (
    judge_counts,
    judge_total,
    parts_changed,
    quantity_of,
    totals,
)
from fixtures.records.counts import (
    BYTES_MOVED,
    BYTES_TO_DEVICE,
    COPIES_TO_DEVICE,
    COPIES_TO_HOST,
    FLOPS,
    LAUNCHES,
    OPERATIONS,
    SYNCS,
    Counts,
)
from fixtures.records.outcome import Outcome
from fixtures.verdicts.case import SideCase
from tests.metrics.cases import case
from tests.support.runs import counts, entry

BASE = Counts(
    totals={OPERATIONS: 14, BYTES_MOVED: 2**30, SYNCS: 2},
    operations={"aten::mm": 10, "aten::add": 4},
    compute_dtypes={"float16": 10},
    sync_places={"diffusers/x.py:step (aten::item)": 2},
)
SIDES = SideCase("storybook-bf16", entry(counts=BASE), {})


# Against a baseline


@pytest.mark.parametrize(
    ("now", "outcome"),
    [
        (counts(mm=1000, add=400), Outcome.PASS),
        (counts(mm=1001, add=400), Outcome.REGRESSION),
        (counts(mm=999, add=400), Outcome.IMPROVEMENT),
        (counts(mm=1000, add=400, _to_copy=1), Outcome.REGRESSION),
        (counts(mm=1000), Outcome.IMPROVEMENT),
    ],
)
def test_equal_counts_pass_and_one_call_more_or_less_does_not(
    now: Counts, outcome: Outcome
) -> None:
    assert judge_counts(case(), now).outcome is outcome


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("totals", "flops"),
        ("compute_dtypes", "float32"),
        ("sync_places", "diffusers/x.py:step (item)"),
        ("copy_places", "diffusers/x.py:step (to the device)"),
        ("copy_bytes", "diffusers/x.py:step (to the host)"),
    ],
)
def test_every_kind_of_count_is_judged(field: str, name: str) -> None:
    plain = entry().counts
    more = Counts(**{**vars(plain), field: {**getattr(plain, field), name: 1}})
    verdict = judge_counts(case(), more)
    assert verdict.outcome is Outcome.REGRESSION
    assert f"{name} 0 -> 1" in verdict.sentence


def test_an_entry_without_places_of_copies_is_judged_by_what_it_has() -> None:
    place = "diffusers/x.py:step (to the device)"
    now = replace(BASE, totals={**BASE.totals, COPIES_TO_DEVICE: 3}, copy_places={place: 3})
    earlier = case(entry=entry(counts=replace(now, copy_places={})))
    assert judge_counts(earlier, now).outcome is Outcome.PASS
    more = replace(now, totals={**now.totals, COPIES_TO_DEVICE: 4})
    assert judge_counts(earlier, more).outcome is Outcome.REGRESSION
    # It was stored when no copy to the device waited.
    waits = {**now.sync_places, "diffusers/x.py:step (copy to the device)": 3}
    waiting = replace(now, totals={**now.totals, SYNCS: 5}, sync_places=waits)
    assert judge_counts(earlier, waiting).outcome is Outcome.PASS
    assert judge_counts(case(entry=entry(counts=now)), waiting).outcome is Outcome.REGRESSION
    # Where nothing was copied, no place was left out.
    assert f"copies at {place} 0 -> 3" in judge_counts(case(entry=entry(counts=BASE)), now).sentence


def test_more_of_one_kind_is_a_regression_however_much_less_there_is_of_another() -> None:
    verdict = judge_counts(case(), counts(mm=1, add=401))
    assert verdict.outcome is Outcome.REGRESSION
    assert "aten::add 400 -> 401" in verdict.sentence


def test_the_largest_relative_changes_come_first_and_the_rest_is_counted() -> None:
    stored = {f"op{number}": 10 for number in range(9)}
    on = case(entry=entry(counts=Counts(operations=stored)))
    sentence = judge_counts(on, Counts(operations={**stored, "op7": 90, "op3": 30})).sentence
    assert sentence.index("op7 10 -> 90") < sentence.index("op3 10 -> 30")
    all_changed = judge_counts(on, Counts(operations=dict.fromkeys(stored, 11))).sentence
    assert all_changed.count("10 -> 11") == 5
    assert "and 4 more" in all_changed


def test_a_doubled_operation_comes_before_a_few_more_bytes() -> None:
    stored = Counts({BYTES_MOVED: 10**9}, {"aten::mm": 10, "aten::add": 400})
    now = Counts({BYTES_MOVED: 10**9 + 10**6}, {"aten::mm": 20, "aten::add": 450})
    sentence = judge_counts(case(entry=entry(counts=stored)), now).sentence
    assert "changed: aten::mm 10 -> 20, aten::add 400 -> 450, bytes moved" in sentence


def test_the_modules_that_call_more_are_named() -> None:
    on = case(entry=entry(origins={"ResnetBlock2D": 10, "Attention": 5}))
    origins = {"ResnetBlock2D": 12, "Attention": 5}
    sentence = judge_counts(on, counts(mm=1001, add=400), origins).sentence
    assert "operations by module: ResnetBlock2D 10 -> 12;" in sentence
    for unknown in (
        judge_counts(on, counts(mm=1001, add=400)),
        judge_counts(case(), counts(mm=1001, add=400), origins),
    ):
        assert "by module" not in unknown.sentence


@pytest.mark.parametrize(
    ("steps", "more", "change"),
    [
        (20, 40, "(+40)"),
        (20, -20, "(-20)"),
        (20, 3, "(+3, less than once a step)"),
        (20, 27, "(+27)"),
    ],
)
def test_a_change_is_never_divided_by_the_number_of_steps(
    steps: int, more: int, change: str
) -> None:
    verdict = judge_counts(case(counted_steps=steps), counts(mm=1000 + more, add=400))
    assert f"aten::mm 1,000 -> {1000 + more:,} {change}" in verdict.sentence
    assert verdict.detail == f"aten::mm 1,000 -> {1000 + more:,} {change}"


@pytest.mark.parametrize("steps", [0, 1])
def test_of_one_step_or_an_unknown_number_nothing_is_said(steps: int) -> None:
    verdict = judge_counts(case(counted_steps=steps), counts(mm=1002, add=400))
    assert verdict.detail == "aten::mm 1,000 -> 1,002"


def test_the_detail_names_the_modules_of_the_count_that_changed_most() -> None:
    stored = {"aten::mm in Attention": 10, "aten::add in Attention": 5, "aten::mm in Vae": 1}
    on = case(entry=entry(origins=stored))
    more = counts(mm=1001, add=400)
    origins = {**stored, "aten::mm in Attention": 11, "aten::addmm in Unet": 1}
    assert judge_counts(on, more, origins).detail == "aten::mm 1,000 -> 1,001 in Attention"
    many = {f"aten::mm in M{number}": 1 for number in range(5)}
    assert judge_counts(on, more, stored | many).detail.endswith(" in M0, M1, M2 and 2 more")
    # What is not stored leaves open which of the callers is new.
    assert judge_counts(case(), more, stored).detail.endswith(", called in Attention, Vae")


@pytest.mark.parametrize(
    ("now", "measured"),
    [
        (counts(mm=1000, add=400), 1400),
        (counts(mm=1001, add=400), 1401),
        (Counts({LAUNCHES: 7}), 7),
        (Counts({LAUNCHES: 7, OPERATIONS: 5}), 5),
        (Counts({FLOPS: 7}), 0),
    ],
)
def test_operations_or_launches_stand_for_all_counts(now: Counts, measured: int) -> None:
    verdict = judge_counts(case(), now)
    assert (verdict.measured, verdict.baseline, verdict.limit) == (measured, 1400, 1400)


@pytest.mark.parametrize("impossible", [-1, math.nan])
def test_an_impossible_count_is_broken(impossible: Any) -> None:
    verdict = judge_counts(case(), counts(mm=impossible, add=400))
    assert verdict.outcome is Outcome.BROKEN
    assert "is not a count" in verdict.sentence


def test_nothing_counted_is_broken_and_no_improvement() -> None:
    verdict = judge_counts(case(), Counts())
    assert verdict.outcome is Outcome.BROKEN
    assert "no operation was counted" in verdict.sentence


def test_nothing_counted_on_either_side_is_no_baseline() -> None:
    assert judge_counts(case(entry=entry(counts=Counts())), Counts()).outcome is (
        Outcome.NO_BASELINE
    )


# Head against base


def test_totals_leave_out_single_operations_and_places() -> None:
    assert totals(BASE) == {OPERATIONS: 14, BYTES_MOVED: 2**30, SYNCS: 2, "compute float16": 10}


@pytest.mark.parametrize(
    ("now", "limit", "outcome"),
    [
        (14, 0.0, Outcome.PASS),
        (15, 0.0, Outcome.REGRESSION),
        (13, 0.0, Outcome.IMPROVEMENT),
        (15, 1.4, Outcome.PASS),
        (16, 1.4, Outcome.REGRESSION),
        (13, 1.4, Outcome.PASS),
        (12, 1.4, Outcome.IMPROVEMENT),
    ],
)
def test_a_total_is_judged_exactly_or_by_what_is_allowed(
    now: int, limit: float, outcome: Outcome
) -> None:
    verdict = judge_total(SIDES, OPERATIONS, replace(BASE, totals={OPERATIONS: now}), limit)
    assert verdict.outcome is outcome
    assert verdict.metric == OPERATIONS
    assert (verdict.measured, verdict.baseline) == (now, 14)
    assert verdict.limit == pytest.approx(14 + limit)


def test_a_total_that_base_lacks_is_more() -> None:
    assert judge_total(SIDES, FLOPS, Counts({FLOPS: 1}), 0.0).outcome is Outcome.REGRESSION


def test_products_in_another_dtype_are_a_total_of_their_own() -> None:
    head = Counts(compute_dtypes={"float16": 9, "float32": 1})
    assert judge_total(SIDES, "compute float32", head, 0.0).outcome is Outcome.REGRESSION
    assert judge_total(SIDES, "compute float16", head, 0.0).outcome is Outcome.PASS
    fewer = Counts(compute_dtypes={"float16": 9})
    assert judge_total(SIDES, "compute float16", fewer, 0.0).outcome is Outcome.IMPROVEMENT


def test_bytes_are_printed_as_bytes() -> None:
    assert quantity_of(BYTES_MOVED).format(2**30) == "1.00 GiB"
    assert quantity_of(OPERATIONS).format(2**30) == "1,073,741,824"


def test_the_parts_that_changed_most_are_named() -> None:
    head = Counts(
        operations={"aten::mm": 3, "aten::add": 5, "aten::clone": 5, "aten::t": 1},
        sync_places={"diffusers/y.py:step (aten::item)": 1},
    )
    assert parts_changed(OPERATIONS, BASE, head) == "mm -7, clone +5, add +1"
    assert parts_changed(SYNCS, BASE, head) == (
        "diffusers/x.py:step (aten::item) -2, diffusers/y.py:step (aten::item) +1"
    )
    assert parts_changed(BYTES_MOVED, BASE, head) == ""
    to, back = "x.py:step (to the device)", "x.py:step (to the host)"
    copied = replace(BASE, copy_places={to: 2, back: 1}, copy_bytes={to: 2**20, back: 8})
    assert parts_changed(COPIES_TO_DEVICE, BASE, copied) == f"{to} +2"
    assert parts_changed(BYTES_TO_DEVICE, copied, BASE) == f"{to} -1.00 MiB"
    assert parts_changed(COPIES_TO_HOST, BASE, copied) == f"{back} +1"
    assert parts_changed(OPERATIONS, BASE, BASE) == ""
    assert "mm -7, clone +5" in judge_total(SIDES, OPERATIONS, head, 0.0).sentence
