"""Compiled code: what fails, what is a gain, what is not judged, and which cause is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from fixtures.metrics.compilation import METRIC, TIME_LIMIT, judge_compilation
from fixtures.records.compilation import (
    BREAKS,
    BUFFERS,
    CAPTURED,
    GRAPHS,
    KERNELS,
    RECOMPILATIONS,
    RUNS,
    Compilation,
    of_call,
)
from fixtures.records.outcome import Outcome, Verdict
from fixtures.records.run import ScenarioRecord
from fixtures.verdicts.case import SideCase
from fixtures.verdicts.compared import ComparedFigure, Sides
from tests.metrics.cases import NEWER, case
from tests.support.runs import entry

PROMPT = of_call(RECOMPILATIONS, "another prompt")
LATER_RUNS = of_call(RUNS, "another prompt")
COUNTS = {
    GRAPHS: 2,
    CAPTURED: 92,
    BREAKS: 0,
    RUNS: 14,
    KERNELS: 34,
    BUFFERS: 2_429_440,
    PROMPT: 0,
    LATER_RUNS: 14,
}
STORED = Compilation(COUNTS, {GRAPHS: ("0/0: size mismatch",)}, 4.0, (50.0, 52.0), NEWER)
BREAK = "Skip inlining at diffusers/models/attention.py:12"
GUARD = "0/1: tensor 'hidden_states' size mismatch at index 1. expected 77, actual 12"


def now(changes: Mapping[str, int] = {}, **fields: object) -> Compilation:
    return replace(STORED, counts={**COUNTS, **changes}, **fields)  # type: ignore[arg-type]


def judged(found: Compilation, stored: Compilation | None = STORED) -> list[Verdict]:
    return judge_compilation(case(entry=replace(entry(), compilation=stored)), found)


def compared(base: Compilation | str, head: Compilation | str) -> list[ComparedFigure]:
    records = [
        ScenarioRecord("w-t", "w", "t", "f", not_compiled=side)
        if isinstance(side, str)
        else ScenarioRecord("w-t", "w", "t", "f", compilation=side)
        for side in (base, head)
    ]
    return METRIC.compare(Sides(SideCase("w-t", None, {}), records[0], records[1]))


@pytest.mark.parametrize(
    ("changes", "causes", "outcome", "says"),
    [
        ({}, {}, Outcome.PASS, "compiles as in the baseline"),
        (
            {BREAKS: 1, GRAPHS: 3, RUNS: 28},
            {BREAKS: (BREAK,)},
            Outcome.REGRESSION,
            f"storybook-fp16: graph breaks 0 -> 1 ({BREAK}); graphs 2 -> 3 (0/0: size mismatch); ",
        ),
        (
            {PROMPT: 2},
            {PROMPT: (GUARD,)},
            Outcome.REGRESSION,
            f"storybook-fp16: recompilations (another prompt) 0 -> 2 ({GUARD}); ",
        ),
        ({KERNELS: 35}, {}, Outcome.REGRESSION, "generated kernels 34 -> 35"),
        ({KERNELS: 33}, {}, Outcome.IMPROVEMENT, "generated kernels 34 -> 33"),
        ({BUFFERS: 3_429_440}, {}, Outcome.REGRESSION, "buffer bytes 2.32 MiB -> 3.27 MiB"),
        # What was captured runs eagerly: nothing else shows it.
        ({LATER_RUNS: 0}, {}, Outcome.REGRESSION, "graph runs (another prompt) 14 -> 0"),
        ({CAPTURED: 40}, {}, Outcome.BROKEN, "captured calls 92 -> 40; that is implausible"),
        ({KERNELS: 0}, {}, Outcome.BROKEN, "generated kernels 34 -> 0; that is implausible"),
        ({KERNELS: 33, GRAPHS: 3}, {}, Outcome.REGRESSION, "fp16: graphs 2 -> 3"),
    ],
)
def test_every_count_is_judged_exactly(
    changes: Mapping[str, int], causes: Mapping[str, tuple[str, ...]], outcome: Outcome, says: str
) -> None:
    verdict = judged(now(changes, causes={**STORED.causes, **causes}))[0]
    assert (verdict.outcome, says in verdict.sentence) == (outcome, True), verdict.sentence
    if outcome is Outcome.REGRESSION:
        assert verdict.sentence.endswith(
            'nox -s refresh -- -m compilation -k "[storybook-fp16]" --perf-reason "WHY"'
        )


def test_a_cause_that_is_new_is_named_before_one_that_only_moved() -> None:
    moved = "Skip inlining at diffusers/models/attention.py:99"
    other = "Data-dependent branching at diffusers/models/unet.py:7"
    stored = now({BREAKS: 1}, causes={BREAKS: (BREAK,)})
    sentence = judged(now({BREAKS: 2}, causes={BREAKS: (moved, other)}), stored)[0].sentence
    assert f"graph breaks 1 -> 2 ({other});" in sentence


@pytest.mark.parametrize(
    ("relative", "outcome"),
    [
        ((52.0 * TIME_LIMIT,), Outcome.PASS),
        ((52.0 * TIME_LIMIT + 0.1,), Outcome.REGRESSION),
        ((10.0,), Outcome.PASS),
    ],
)
def test_compile_time_has_a_wide_limit_above_the_slowest_measurement(
    relative: tuple[float, ...], outcome: Outcome
) -> None:
    verdict = judged(now(relative=relative, first_call_s=9.5))[1]
    assert verdict.outcome is outcome
    assert "(9.50 s of CPU time)" in verdict.sentence


def test_what_cannot_be_compared_is_not_judged_and_what_was_lost_fails() -> None:
    older = replace(STORED, software={**NEWER, "torch": "2.12.1+cpu"})
    (verdict,) = judged(STORED, older)
    assert verdict.outcome is Outcome.NOT_JUDGED
    assert "the baseline was counted with torch 2.12.1+cpu, this is 2.13.0" in verdict.sentence
    patch = replace(STORED, software={**NEWER, "torch": "2.13.1+cu130"})
    assert judged(patch)[0].outcome is Outcome.PASS
    (verdict,) = judged(STORED, None)
    assert verdict.outcome is Outcome.NOT_JUDGED
    assert "store it with: nox -s refresh -- -m compilation -k" in verdict.sentence
    fewer = {name: count for name, count in COUNTS.items() if name != PROMPT}
    (verdict,) = judged(replace(STORED, counts=fewer))
    assert verdict.outcome is Outcome.BROKEN
    assert f"{PROMPT} was not counted" in verdict.sentence
    lora = replace(STORED, counts={**COUNTS, of_call(RECOMPILATIONS, "after a LoRA"): 0})
    assert judged(STORED, lora)[0].outcome is Outcome.PASS  # peft is not installed
    assert judged(lora, STORED)[0].measured == judged(STORED)[0].measured
    assert judge_compilation(case(entry=None), STORED)[0].outcome is Outcome.NO_BASELINE
    record = ScenarioRecord("w-t", "w", "t", "f", not_compiled="there is no compiler")
    (verdict,) = METRIC.judge(case(), record)
    assert verdict.detail == "there is no compiler"
    nothing = replace(record, not_compiled="")
    assert METRIC.judge(case(entry=None), nothing)[0].outcome is Outcome.NO_BASELINE
    assert "holds none; store it" in str(METRIC.judge(case(), nothing)[0].reason)


def test_two_releases_are_compared_count_by_count() -> None:
    head = now(
        {BREAKS: 1, KERNELS: 33, CAPTURED: 92, BUFFERS: 2_430_000}, causes={BREAKS: (BREAK,)}
    )
    figures = {each.verdict.metric: each for each in compared(STORED, head)}
    outcomes = {name: each.verdict.outcome for name, each in figures.items()}
    assert outcomes == {
        "compilation (graph breaks)": Outcome.REGRESSION,
        "compilation (generated kernels)": Outcome.IMPROVEMENT,
        "compilation (buffer bytes)": Outcome.PASS,  # 0.02 %
    }
    assert figures["compilation (graph breaks)"].note == BREAK
    (fewer_runs,) = compared(STORED, now({LATER_RUNS: 7}))
    assert fewer_runs.note == ""
    (same,) = compared(STORED, STORED)
    assert (same.verdict.outcome, same.base) == (Outcome.PASS, 2.0)
    fewer = {name: count for name, count in COUNTS.items() if name != PROMPT}
    less = replace(STORED, counts=fewer)
    both, alone = compared(replace(STORED, counts={**COUNTS, PROMPT: 2}), less)
    assert (both.base, both.head) == (2.0, 2.0)
    assert alone.note == f"compilation not compared: on head: nothing was counted of {PROMPT}"
    assert compared(less, STORED)[1].note.startswith("compilation not compared: on base: ")
    older = replace(STORED, software={**NEWER, "torch": "2.12.1"})
    sides: list[tuple[Compilation | str, Compilation | str, str]] = [
        (older, STORED, "on both sides: base has torch 2.12.1, this is 2.13.0"),
        ("no twin", STORED, "on base: no twin"),
        ("no twin", "no twin", "on both sides: no twin"),
    ]
    for base, other, reason in sides:
        (figure,) = compared(base, other)
        assert figure.verdict.outcome is Outcome.UNSUPPORTED
        assert figure.note == f"compilation not compared: {reason}"


def test_a_refresh_says_what_differs() -> None:
    none, old = entry(), replace(entry(), compilation=STORED)
    new = replace(entry(), compilation=now({KERNELS: 40}))
    assert METRIC.changes(none, new) == ["compilation none -> 2 graphs"]
    assert METRIC.changes(old, new) == ["generated kernels 34 -> 40"]
    assert METRIC.changes(old, none) == METRIC.changes(old, old) == []


def test_suspects_are_what_changed_since_it_was_counted() -> None:
    counted = replace(STORED, software={**NEWER, "diffusers": "0.42.0"})
    sentence = judged(now({GRAPHS: 3}), counted)[0].sentence
    assert "changed since the baseline: diffusers 0.42.0 -> " in sentence
