"""Exact metrics: what of a table of counts is a verdict, and which causes are named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.metrics.counts import COMPONENTS, COUNTS, HOST, HOST_CALLS_A_STEP, STORED_HOST_CALLS
from fixtures.metrics.exact import ExactMetric
from fixtures.metrics.limits import Limits
from fixtures.records.counts import (
    BYTES_MOVED,
    BYTES_TO_DEVICE,
    COPIES_TO_DEVICE,
    COPIES_TO_HOST,
    EMPTY_CACHE,
    FLOPS,
    HOST_CALLS,
    LAUNCHES,
    OPERATIONS,
    SYNCS,
    Counts,
    Row,
)
from fixtures.records.outcome import Outcome, Verdict
from fixtures.report.comparison import texts_of
from tests.metrics.cases import case, side_case
from tests.support.counting import counted, counts, host_calls, with_functions
from tests.support.runs import entry, scenario_record

BASE = counted(
    {OPERATIONS: 0, BYTES_MOVED: 2**30},
    {"aten::mm in Attention": 1000, "aten::add in Attention": 400},
    compute={"float16": 1000},
    waits={"diffusers/x.py:step (item)": 2},
    copies={"diffusers/x.py:step (to the device)": 3},
    copied_bytes={"diffusers/x.py:step (to the device)": 3 * 2**20},
)
STORED = host_calls(a_step=600, torch_a_step=5000, once=300)
"""Three steps; 2 % of a step of the libraries is 12, of torch 100."""


def judged(
    now: Counts, stored: Counts = BASE, metric: ExactMetric = COUNTS, **changes: Any
) -> Verdict:
    on = case(entry=entry(counts=stored), **changes)
    [verdict] = metric.judge(on, scenario_record("fp16", counts=now))
    return verdict


def compared(
    head: Counts, base: Counts = BASE, metric: ExactMetric = COUNTS, **limits: Any
) -> dict[str, Verdict]:
    side = side_case(scenario_record("fp16", counts=base), limits=Limits(**limits))
    verdicts = metric.judge(side, scenario_record("fp16", counts=head))
    return {verdict.metric: verdict for verdict in verdicts if verdict.outcome.judges}


def plus(counts: Counts, row: Row, number: int) -> Counts:
    tally = counts.tally
    if row != Row(row.kind):
        tally.pop(Row(row.kind), None)  # a kind that has parts has no row without
    return Counts.of({**tally, row: tally.get(row, 0) + number})


# Against a baseline


@pytest.mark.parametrize(
    ("row", "number", "outcome", "named"),
    [
        (Row(OPERATIONS, "aten::mm", "Attention"), 1, Outcome.REGRESSION, "mm +1 in Attention"),
        (Row(OPERATIONS, "aten::mm", "Attention"), -1, Outcome.IMPROVEMENT, "mm -1 in Attention"),
        (Row(OPERATIONS, "aten::clone", "Unet"), 1, Outcome.REGRESSION, "clone +1 in Unet"),
        (Row(FLOPS), 1, Outcome.REGRESSION, "flops 0 -> 1"),
        (Row("compute", "float32"), 1, Outcome.REGRESSION, "compute (float32) 0 -> 1"),
        (Row(SYNCS, "item", "a.py:f"), 1, Outcome.REGRESSION, "a.py:f (item) +1"),
        (Row(COPIES_TO_DEVICE, "", "a.py:f"), 1, Outcome.REGRESSION, "copy to the device +1 at a"),
        (Row(BYTES_TO_DEVICE, "", "a.py:f"), 8, Outcome.REGRESSION, "+8 bytes at a.py:f"),
    ],
)
def test_each_count_is_judged_exactly_and_its_cause_named(
    row: Row, number: int, outcome: Outcome, named: str
) -> None:
    assert judged(BASE).outcome is Outcome.PASS
    verdict = judged(plus(BASE, row, number))
    assert verdict.outcome is outcome
    assert named in verdict.sentence
    assert verdict.detail in verdict.sentence


def test_less_of_one_does_not_make_up_for_more_of_another() -> None:
    other_kind = counts(mm=999, add=401)
    verdict = judged(other_kind, counts(mm=1000, add=400))
    assert verdict.outcome is Outcome.REGRESSION
    assert "operations 1,400 as before, but others: add +1, mm -1" in verdict.sentence
    elsewhere = counted({OPERATIONS: 5}, waits={"b.py:g (item)": 2})
    here = counted({OPERATIONS: 5}, waits={"a.py:f (item)": 2})
    assert judged(elsewhere, here).outcome is Outcome.REGRESSION
    assert not {verdict.outcome for verdict in compared(elsewhere, here).values()} - {Outcome.PASS}


def test_a_module_that_is_renamed_calls_what_it_called() -> None:
    renamed = counted({}, {"aten::mm in SelfAttention": 1000, "aten::add in SelfAttention": 400})
    stored = {"aten::mm in Attention": 1000, "aten::add in Attention": 400}
    assert judged(renamed, counted({}, stored)).outcome is Outcome.PASS
    verdict = judged(renamed, counted({}, {**stored, "aten::mm in Attention": 999}))
    assert "operations 1,399 -> 1,400 (+1, +0.1 %): mm +1 in SelfAttention;" in verdict.sentence


def test_a_sentence_names_five_changes_and_three_causes() -> None:
    more = {f"aten::op{number} in M": number + 1 for number in range(6)}
    everything = counted(
        {BYTES_MOVED: 1, FLOPS: 1, LAUNCHES: 1, "fills": 1},
        more,
        waits={"a.py:f (item)": 1},
        copies={"a.py:f (to the host)": 1},
    )
    sentence = judged(everything, counts(mm=1)).sentence
    assert "op5 +6 in M, op4 +5 in M, op3 +4 in M and 3 more" in sentence
    assert "; 2 more;" in sentence


def test_an_entry_without_places_of_copies_is_judged_by_what_it_has() -> None:
    place = "diffusers/x.py:step (to the device)"
    now = counted({OPERATIONS: 9}, copies={place: 3}, copied_bytes={place: 64})
    earlier = counted({OPERATIONS: 9, COPIES_TO_DEVICE: 3, BYTES_TO_DEVICE: 64, SYNCS: 0})
    assert judged(now, earlier).outcome is Outcome.PASS
    more = counted({OPERATIONS: 9}, copies={place: 4}, copied_bytes={place: 64})
    assert judged(more, earlier).outcome is Outcome.REGRESSION
    # It was stored when no copy to the device waited.
    waiting = now.beside(counted(waits={"diffusers/x.py:step (copy to the device)": 3}))
    assert judged(waiting, earlier).outcome is Outcome.PASS
    assert judged(waiting, now).outcome is Outcome.REGRESSION


@pytest.mark.parametrize(
    ("now", "measured"),
    [(BASE, 1400), (counted({LAUNCHES: 7}), 7), (counted({LAUNCHES: 7, OPERATIONS: 5}), 5)],
)
def test_operations_or_launches_stand_for_all_counts(now: Counts, measured: int) -> None:
    verdict = judged(now)
    assert (verdict.measured, verdict.baseline) == (measured, 1400)


@pytest.mark.parametrize(
    ("metric", "own", "other"),
    [
        (COUNTS, BASE, host_calls()),
        (HOST, host_calls(), BASE),
        (COMPONENTS, counted(components={"vae": 1}), BASE),
    ],
)
def test_what_was_not_counted_is_broken_or_not_judged(
    metric: ExactMetric, own: Counts, other: Counts
) -> None:
    assert judged(own, own, metric).outcome is Outcome.PASS
    assert judged(other, own, metric).outcome is Outcome.BROKEN
    assert judged(other, other, metric).outcome is Outcome.NOT_JUDGED
    older = judged(own, other, metric)
    assert older.outcome is Outcome.NOT_JUDGED
    assert "is older than this metric; renew it with: nox -s refresh" in older.sentence
    [missing] = metric.judge(case(entry=None), scenario_record("fp16", counts=own))
    assert missing.outcome is Outcome.NO_BASELINE
    compiled = judged(other, own, metric, compiled=True)
    assert "compiled code cannot be counted" in compiled.sentence
    assert compared(own, other, metric) == {}
    [blind] = compared(other, own, metric).values()
    assert blind.outcome is Outcome.BROKEN


# Head against base


@pytest.mark.parametrize(
    ("more", "limits", "outcome"),
    [
        (14, {}, Outcome.PASS),
        (15, {}, Outcome.REGRESSION),
        (-14, {}, Outcome.PASS),
        (-15, {}, Outcome.IMPROVEMENT),
        (1, {"exact": True}, Outcome.REGRESSION),
        (28, {"allowed": 0.02}, Outcome.PASS),
    ],
)
def test_between_two_sides_the_material_changes_are_verdicts(
    more: int, limits: Mapping[str, Any], outcome: Outcome
) -> None:
    figure = compared(plus(BASE, Row(OPERATIONS, "aten::mm", "Attention"), more), **limits)[
        OPERATIONS
    ]
    assert figure.outcome is outcome
    assert (figure.baseline, figure.measured) == (1400, 1400 + more)
    assert figure.detail == f"mm {more:+} in Attention"


def test_equal_sides_show_one_figure_that_passes() -> None:
    for same, metric, number in ((BASE, COUNTS, 1400), (STORED, HOST, 600)):
        [verdict] = compared(same, same, metric).values()
        assert verdict.text == f"{metric.name} as in base"
        assert (verdict.baseline, verdict.measured, verdict.detail) == (number, number, "")


def test_one_wait_in_every_step_is_material_and_one_in_a_call_is_not() -> None:
    def outcome(kind: str, now: int) -> Outcome:
        base, head = (counted({OPERATIONS: 1, kind: number}) for number in (4, now))
        figures = compared(head, base, steps=3)
        return figures[kind].outcome if kind in figures else Outcome.PASS

    for kind in (SYNCS, COPIES_TO_DEVICE, COPIES_TO_HOST):
        assert [outcome(kind, now) for now in (4, 6, 7, 1)] == [
            Outcome.PASS,
            Outcome.PASS,
            Outcome.REGRESSION,
            Outcome.IMPROVEMENT,
        ]


def test_products_in_another_dtype_are_more_there_and_no_gain_here() -> None:
    head = plus(counted({}, {"aten::mm": 1000}, compute={"float16": 900}), Row("compute", "b"), 100)
    figures = compared(head, counted({}, {"aten::mm": 1000}, compute={"float16": 1000}))
    assert figures["compute (b)"].outcome is Outcome.REGRESSION
    assert figures["compute (float16)"].outcome is Outcome.PASS
    fewer = compared(counted({}, {"aten::mm": 1}, compute={"float16": 900}), BASE)
    assert fewer["compute (float16)"].outcome is Outcome.IMPROVEMENT


def test_bytes_are_printed_as_bytes_and_copies_with_theirs() -> None:
    place = "diffusers/y.py:f (to the device)"
    more = BASE.beside(counted(copies={place: 2}, copied_bytes={place: 2**20}))
    figures = compared(more)
    assert texts_of(figures[BYTES_TO_DEVICE])[:2] == ("3.00 MiB", "4.00 MiB")
    one_more = judged(plus(BASE, Row(BYTES_MOVED), 1)).sentence
    assert "bytes moved 1,073,741,824 bytes -> 1,073,741,825 bytes (+1 bytes" in one_more
    assert (
        figures[BYTES_TO_DEVICE].detail == "copy to the device +2, +1.00 MiB, at diffusers/y.py:f"
    )


# The host's work


@pytest.mark.parametrize(
    ("now", "outcome"),
    [
        (STORED, Outcome.PASS),
        (host_calls(a_step=613), Outcome.REGRESSION),
        (host_calls(torch_a_step=5101), Outcome.REGRESSION),
        (host_calls(torch_a_step=4899), Outcome.IMPROVEMENT),
        # In all 2,100: 2 % of it is 42, ten a step are 30.
        (host_calls(once=342), Outcome.PASS),
        (host_calls(once=343), Outcome.REGRESSION),
        # One worse and one better is worse.
        (host_calls(a_step=700, torch_a_step=4000), Outcome.REGRESSION),
        (host_calls(runtime={EMPTY_CACHE: 1}), Outcome.REGRESSION),
        # Not counted when it was stored.
        (host_calls(standard=1000), Outcome.PASS),
    ],
)
def test_a_change_of_the_host_s_work_beyond_its_limit_is_a_verdict(
    now: Counts, outcome: Outcome
) -> None:
    assert judged(now, STORED, HOST).outcome is outcome


@given(before=st.integers(20, 10**6), now=st.integers(20, 10**6))
def test_the_limit_is_the_larger_of_share_and_ten_a_step(before: int, now: int) -> None:
    stored, changed = (host_calls(a_step=each, torch_a_step=0, once=0) for each in (before, now))
    limit = max(STORED_HOST_CALLS.share * before, HOST_CALLS_A_STEP)
    beyond = abs(now - before) > limit
    assert (judged(changed, stored, HOST).outcome is Outcome.PASS) is not beyond


def test_functions_are_named_where_they_are_called_more() -> None:
    within = judged(host_calls(a_step=603), STORED, HOST)
    assert "within their limits: host calls (a step) 600 -> 603 (+3, +0.5 %)" in within.sentence
    assert (within.measured, within.baseline) == (603, 600)
    stored = with_functions(STORED, {"diffusers/a.py:f": 1, "diffusers/d.py:i": 50})
    now = with_functions(
        STORED,
        {"diffusers/a.py:f": 1, "diffusers/b.py:g": 100, "diffusers/e.py:j": 20},
        {"transformers/a.py:f": 70},
    )
    verdict = judged(now, stored, HOST)
    named = "diffusers/b.py:g +100 a step, diffusers/e.py:j +20 a step"
    assert f"host calls (a step) 651 -> 721 (+70, +10.8 %): {named};" in verdict.sentence
    assert verdict.detail.startswith("host calls (a step) 651 -> 721")
    once = judged(with_functions(STORED, {}, {"transformers/a.py:f": 70}), STORED, HOST)
    assert "transformers/a.py:f +70 outside of the steps" in once.sentence
    assert "(a step)" not in once.sentence
    # Only in the first step, where it was in all three.
    each = with_functions(STORED, {"diffusers/b.py:g": 20})
    first = with_functions(STORED, {}, {"diffusers/b.py:g": 20})
    assert "b.py:g +20 outside" not in judged(first, each, HOST).sentence


def test_code_may_move_from_one_library_to_another() -> None:
    in_diffusers, in_accelerate = (
        with_functions(STORED, {f"{package}/hooks.py:f": 300})
        for package in ("diffusers", "accelerate")
    )
    assert judged(in_accelerate, in_diffusers, HOST).outcome is Outcome.PASS


def test_a_failing_call_of_the_runtime_is_told_by_its_name() -> None:
    three, four = (host_calls(runtime={EMPTY_CACHE: number}) for number in (3, 4))
    assert f"{EMPTY_CACHE} (a step) 3 -> 4 (+1" in judged(four, three, HOST).sentence
    assert judged(three, four, HOST).outcome is Outcome.IMPROVEMENT


def test_nothing_is_judged_by_what_another_python_did() -> None:
    verdict = judged(replace(STORED, python="3.12"), STORED, HOST)
    assert verdict.outcome is Outcome.NOT_JUDGED
    assert "the baseline was recorded on Python 3.11, this is 3.12" in verdict.sentence
    assert compared(replace(STORED, python="3.12"), STORED, HOST) == {}


# Calls of components

CALLED = {"denoiser (batch of 2)": 20, "vae (batch of 1)": 1}


@pytest.mark.parametrize(
    ("now", "outcome"),
    [
        (CALLED, Outcome.PASS),
        ({**CALLED, "denoiser (batch of 2)": 10}, Outcome.REGRESSION),
        ({**CALLED, "denoiser (batch of 2)": 19}, Outcome.REGRESSION),
        ({**CALLED, "denoiser (batch of 2)": 21}, Outcome.REGRESSION),
        ({"denoiser (batch of 2)": 20}, Outcome.REGRESSION),
        ({"denoiser (batch of 1)": 20, "vae (batch of 1)": 1}, Outcome.REGRESSION),
    ],
)
def test_fewer_calls_of_a_component_fail_as_more_do(
    now: Mapping[str, int], outcome: Outcome
) -> None:
    stored, head = (counted(components=calls) for calls in (CALLED, now))
    assert judged(head, stored, COMPONENTS).outcome is outcome
    figures = compared(head, stored, COMPONENTS, steps=20).values()
    assert {figure.outcome for figure in figures} == {outcome}


# A refresh


def test_a_refresh_says_what_changed_and_an_entry_has_each_figure() -> None:
    old, new = entry(counts=BASE), entry(counts=plus(BASE, Row(FLOPS), 5))
    metric = COUNTS.metric()
    assert metric.changes(old, new) == ["flops 0 -> 5 (+5)"]
    assert metric.changes(old, old) == []
    assert metric.exact(new)[FLOPS] == 5
    assert HOST.exact(entry(counts=STORED))[EMPTY_CACHE] == 0, "never called, and counted"
    assert f"{HOST_CALLS} (diffusers/model.py Model.forward)" in HOST.exact(entry(counts=STORED))
