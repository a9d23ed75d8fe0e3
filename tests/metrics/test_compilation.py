"""Compiled code: what fails, what is a gain, what is not judged, and which cause is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from fixtures.metrics.case import SideCase
from fixtures.metrics.compilation import METRIC
from fixtures.records.counts import (
    BREAKS,
    BUFFERS,
    FIRST,
    GRAPHS,
    GUARDS,
    KERNELS,
    LORA,
    RECOMPILATIONS,
    RUNS,
    Counts,
    Number,
    Row,
)
from fixtures.records.outcome import Outcome, Verdict
from tests.metrics.cases import NEWER, case
from tests.support.runs import RECORDED, entry, scenario_record

PROMPT = "another prompt"
BREAK = "Skip inlining at diffusers/models/attention.py:12"
GUARD = "0/1: tensor 'hidden_states' size mismatch at index 1. expected 77, actual 12"
COUNTS = {
    Row(GRAPHS): 2,
    Row(KERNELS): 34,
    Row(BUFFERS): 2_429_440,
    Row(BREAKS, FIRST): 0,
    Row(RUNS, FIRST): 14,
    Row(GUARDS, FIRST, "0/0: size mismatch"): 1,
    Row(BREAKS, PROMPT): 0,
    Row(RUNS, PROMPT): 14,
    Row(RECOMPILATIONS, PROMPT): 0,
}


def now(changes: Mapping[Row, int] = {}, torch: str = "2.13") -> Counts:
    return Counts({row: Number(n) for row, n in {**COUNTS, **changes}.items()}, torch=torch)


STORED = now()
OF_FIRST = Counts({row: n for row, n in STORED.rows.items() if row.name != PROMPT}, torch="2.13")


def judged(counts: Counts, stored: Counts = STORED, **software: str) -> Verdict:
    compiled = replace(RECORDED, software={**NEWER, **software})
    on = case(entry=replace(entry(), counts=stored, compiled=compiled))
    (verdict,) = METRIC.judge(on, scenario_record("fp16", counts=counts))
    return verdict


def compared(base: Counts | str, head: Counts | str) -> list[Verdict]:
    records = [
        scenario_record("t", not_compiled=side)
        if isinstance(side, str)
        else scenario_record("t", counts=side)
        for side in (base, head)
    ]
    return METRIC.judge(SideCase("w-t", None, {}, base=records[0]), records[1])


@pytest.mark.parametrize(
    ("changes", "outcome", "says"),
    [
        ({}, Outcome.PASS, "compilation as in the baseline"),
        (
            {Row(BREAKS, FIRST, BREAK): 1, Row(GRAPHS): 3, Row(RUNS, FIRST): 28},
            Outcome.REGRESSION,
            f"graphs 2 -> 3 (+1, +50.0 %): {BREAK} +1 (first call); "
            "graph breaks (first call) 0 -> 1 (+1); graph runs (first call) 14 -> 28 ",
        ),
        (
            {Row(RECOMPILATIONS, PROMPT): 2, Row(GUARDS, PROMPT, GUARD): 1},
            Outcome.REGRESSION,
            f"recompilations (another prompt) 0 -> 2 (+2): {GUARD} +1 (another prompt); ",
        ),
        ({Row(KERNELS): 33}, Outcome.IMPROVEMENT, "generated kernels 34 -> 33"),
        ({Row(BUFFERS): 3_429_440}, Outcome.REGRESSION, "buffer bytes 2.32 MiB -> 3.27 MiB"),
        # What was captured runs eagerly: nothing else shows it.
        ({Row(RUNS, PROMPT): 0}, Outcome.REGRESSION, "graph runs (another prompt) 14 -> 0"),
        ({Row(KERNELS): 0}, Outcome.BROKEN, "generated kernels 34 -> 0"),
        ({Row(BREAKS, LORA): 1, Row(RUNS, LORA): 14}, Outcome.PASS, "compilation as in"),
        ({Row(GUARDS, FIRST, "0/0: size mismatch"): 0}, Outcome.PASS, "compilation as in"),
    ],
)
def test_every_count_is_judged_exactly(
    changes: Mapping[Row, int], outcome: Outcome, says: str
) -> None:
    verdict = judged(now(changes))
    assert (verdict.outcome, says in verdict.sentence) == (outcome, True), verdict.sentence
    if outcome is Outcome.REGRESSION:
        assert verdict.sentence.endswith(
            'nox -s refresh -- -m compilation -k "[storybook-fp16]" --perf-reason "WHY"'
        )


def test_a_break_that_is_mended_is_a_gain_though_it_was_the_only_one() -> None:
    assert judged(STORED, now({Row(BREAKS, FIRST, BREAK): 1})).outcome is Outcome.IMPROVEMENT


def test_a_cause_that_is_new_is_named_and_not_one_that_only_moved() -> None:
    moved = "Skip inlining at diffusers/models/attention.py:99"
    other = "Data-dependent branching at diffusers/models/unet.py:7"
    later = now({Row(BREAKS, FIRST, moved): 1, Row(BREAKS, FIRST, other): 1})
    verdict = judged(later, now({Row(BREAKS, FIRST, BREAK): 1}))
    assert f"(first call) 1 -> 2 (+1, +100.0 %): {other} +1 (first call);" in verdict.sentence


def test_what_cannot_be_compared_is_not_judged_and_what_was_lost_fails() -> None:
    verdict = judged(STORED, now(torch="2.12"))
    assert verdict.outcome is Outcome.NOT_JUDGED
    assert "the baseline was recorded on torch 2.12, this is 2.13" in verdict.sentence
    verdict = judged(STORED, entry().counts)
    assert verdict.outcome is Outcome.NOT_JUDGED
    assert "store it with: nox -s refresh -- -m compilation -k" in verdict.sentence
    verdict = judged(OF_FIRST)
    assert verdict.outcome is Outcome.BROKEN
    assert "'another prompt' was not counted" in verdict.sentence
    with_lora = now({Row(RUNS, LORA): 14})
    assert judged(STORED, with_lora).outcome is Outcome.PASS  # peft is not installed
    new = case(entry=None)
    record = scenario_record("fp16", counts=STORED)
    assert METRIC.judge(new, record)[0].outcome is Outcome.NO_BASELINE
    nowhere = scenario_record("fp16", not_compiled="there is no compiler")
    assert METRIC.judge(case(), nowhere)[0].detail == "there is no compiler"


def test_two_releases_are_compared_count_by_count() -> None:
    head = now({Row(BREAKS, FIRST, BREAK): 1, Row(KERNELS): 33, Row(BUFFERS): 2_430_000})
    figures = {each.metric: each for each in compared(STORED, head)}
    assert {name: each.outcome for name, each in figures.items()} == {
        "graph breaks (first call)": Outcome.REGRESSION,
        "generated kernels": Outcome.IMPROVEMENT,
        "buffer bytes": Outcome.PASS,  # 0.02 %
    }
    assert figures["graph breaks (first call)"].detail == f"{BREAK} +1 (first call)"
    # Graphs of the first call are more kernels, and run in each; a call of one side tells nothing.
    head = now({Row(GUARDS, FIRST, GUARD): 1, Row(KERNELS): 60, Row(RUNS, PROMPT): 28})
    of_head = {Row(RUNS, LORA): Number(1), Row(GUARDS, LORA, GUARD): Number(1)}
    *others, _ = compared(STORED, replace(head, rows={**head.rows, **of_head}))
    assert {each.metric: each.detail for each in others} == {
        "graph runs (another prompt)": f"{GUARD} +1 (first call)",
        "generated kernels": f"{GUARD} +1 (first call)",
    }
    both, alone = compared(STORED, OF_FIRST)
    assert (both.baseline, both.measured) == (2.0, 2.0)
    lost = f"nothing was counted of the call {PROMPT!r}"
    assert alone.text == f"compilation not compared: on head: {lost}"
    assert compared(OF_FIRST, STORED)[1].text == f"compilation not compared: on base: {lost}"
    sides: list[tuple[Counts | str, Counts | str, str]] = [
        (now(torch="2.12"), STORED, "on both sides: base has torch 2.12, this is 2.13"),
        ("no twin", STORED, "on base: no twin"),
        ("no twin", "no twin", "on both sides: no twin"),
    ]
    for base, other, reason in sides:
        (figure,) = compared(base, other)
        assert figure.outcome is Outcome.UNSUPPORTED
        assert figure.text == f"compilation not compared: {reason}"


def test_a_refresh_says_what_differs_and_suspects_are_what_changed_since() -> None:
    old = replace(entry(), counts=STORED)
    assert METRIC.changes(old, replace(entry(), counts=now({Row(KERNELS): 40}))) == [
        "generated kernels 34 -> 40 (+6, +17.6 %)"
    ]
    assert METRIC.changes(old, entry()) == METRIC.changes(old, old) == []
    of_another_torch = replace(entry(), counts=now({Row(KERNELS): 40}, torch="2.14"))
    assert METRIC.changes(old, of_another_torch), "who refreshes sees what torch made of it"
    sentence = judged(now({Row(GRAPHS): 3}), diffusers="0.42.0").sentence
    assert "changed since the baseline: diffusers 0.42.0 -> " in sentence
