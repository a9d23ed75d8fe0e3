"""Instructions: each group by its own limit, what is comparable, and which functions are named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fixtures.metrics import instructions
from fixtures.metrics.instructions import LIMITS, disagreement, judge_instructions
from fixtures.records.host_work import STEP
from fixtures.records.instructions import (
    ALLOCATOR,
    CALL,
    COPIES,
    KERNELS,
    NATIVE,
    PYTHON,
    Instructions,
)
from fixtures.records.outcome import Outcome, Verdict
from fixtures.records.run import ScenarioRecord
from fixtures.verdicts.case import SideCase
from fixtures.verdicts.compared import ComparedFigure, Sides
from fixtures.verdicts.limits import Limits
from tests.metrics.cases import case
from tests.support.runs import FROZEN, entry
from tests.support.runs import instructions as counted

STORED = counted()


def judged(now: Instructions, stored: Instructions | None = STORED) -> Verdict:
    return judge_instructions(case(entry=entry(instructions=stored)), now)


def allowed(group: str, part: str) -> int:
    whole = FROZEN[part] if group == KERNELS else STORED.of(group, part)
    return round(LIMITS[group] * whole)


@pytest.mark.parametrize("group", LIMITS)
@pytest.mark.parametrize("part", [STEP, CALL])
def test_each_group_has_its_limit_in_a_step_and_in_a_call(group: str, part: str) -> None:
    limit = allowed(group, part)
    for more, outcome in (
        (limit, Outcome.PASS),
        (limit + 1, Outcome.REGRESSION),
        (-limit, Outcome.PASS),
        (-limit - 1, Outcome.IMPROVEMENT),
    ):
        changed = {group: more}
        verdict = judged(counted(step=changed) if part == STEP else counted(call=changed))
        assert verdict.outcome is outcome, more
        if outcome is not Outcome.PASS:
            assert f"{group} {more:+,} {part}" in verdict.sentence


def test_what_every_step_adds_is_not_told_again_of_the_call() -> None:
    sentence = judged(counted(step={PYTHON: 3_000_000})).sentence
    assert "python +3,000,000 a step (+20.000 %, limit 0.5 %)" in sentence
    assert "a call (" not in sentence


def test_one_worse_and_one_better_is_worse_and_the_worse_is_told_first() -> None:
    verdict = judged(counted(step={PYTHON: -9_000_000, NATIVE: 20_000}))
    assert verdict.outcome is Outcome.REGRESSION
    assert verdict.sentence.index("native +20,000") < verdict.sentence.index("python -9,000,000")
    assert verdict.detail.startswith("native +20,000")


def test_kernels_are_judged_by_what_they_execute_beyond_the_frozen_reference() -> None:
    other_paths = replace(
        counted(step={KERNELS: 90_000_000}),
        frozen={STEP: FROZEN[STEP] + 90_000_000, CALL: FROZEN[CALL] + 180_000_000},
    )
    assert judged(other_paths).outcome is Outcome.PASS
    without = replace(STORED, frozen={})
    assert judged(without, without).outcome is Outcome.PASS
    more = replace(counted(step={KERNELS: 71_000}), frozen={})
    assert judged(more, without).outcome is Outcome.REGRESSION


def test_copies_and_the_allocator_are_not_judged() -> None:
    assert judged(counted(step={COPIES: 10**9, ALLOCATOR: 10**9})).outcome is Outcome.PASS


def test_a_vanished_interpreter_is_not_believed() -> None:
    assert judged(counted(step={PYTHON: -14_000_000})).outcome is Outcome.BROKEN


@pytest.mark.parametrize(
    ("build", "group", "says"),
    [
        ({"libc": "glibc 2.39"}, KERNELS, "python and native not judged: libc glibc 2.36 -> glibc"),
        ({"python": "3.11.9 (7a)"}, KERNELS, "python and native not judged: python 3.11.7 (6f) ->"),
        ({"valgrind": "3.24.0"}, KERNELS, "python and native not judged: valgrind 3.19.0 ->"),
        ({"torch": "2.14.0 (d5)"}, PYTHON, "kernels and native not judged: torch 2.13.0 (c4) ->"),
    ],
)
def test_where_a_build_differs_the_groups_that_depend_on_it_are_not_judged(
    build: dict[str, str], group: str, says: str
) -> None:
    others = {other: 10**8 for other in LIMITS if other != group}
    verdict = judged(counted(step=others, build=build))
    assert verdict.outcome is Outcome.PASS
    assert says in verdict.sentence
    assert judged(counted(step={group: 10**8}, build=build)).outcome is Outcome.REGRESSION


def test_where_all_builds_differ_nothing_is_judged() -> None:
    verdict = judged(counted(build={"torch": "2.14.0 (d5)", "python": "3.12.1 (aa)"}))
    assert verdict.outcome is Outcome.NOT_JUDGED
    assert "python 3.11.7 (6f) -> 3.12.1 (aa), torch 2.13.0 (c4) -> 2.14.0 (d5)" in verdict.sentence


def test_a_failure_names_the_functions_that_grew_and_what_changed() -> None:
    before = counted(functions={PYTHON: {"eval": 20_000_000, "lookup": 6_000_000, "hash": 300_000}})
    now = counted(
        step={PYTHON: 3_000_000},
        functions={PYTHON: {"eval": 20_100_000, "lookup": 5_000_000, "sum": 6_500_000}},
    )
    sentence = judged(now, before).sentence
    # What is not among the stored functions executed less than the least of them.
    assert ": sum +6,200,000 in a call of 2 steps; changed since the baseline: torch" in sentence
    assert "accept it with: nox -s refresh" in sentence
    assert "lookup" not in sentence
    slower = judged(counted(step={PYTHON: 500_000}, functions=before.functions), now).sentence
    assert "-2,500,000 a step" in slower
    assert ": sum -6,200,000 in a call of 2 steps" in slower


def test_without_stored_counts_nothing_is_judged_and_the_command_is_named() -> None:
    verdict = judged(STORED, None)
    assert verdict.outcome is Outcome.NOT_JUDGED
    assert "holds none; store them with: nox -s refresh" in verdict.detail


def test_two_counts_of_a_refresh_have_to_agree() -> None:
    assert disagreement(STORED, counted(step={PYTHON: 100, COPIES: 10**7})) == ""
    assert "native +20,000 a step" in disagreement(STORED, counted(step={NATIVE: 20_000}))


def compared(
    base: Instructions | None, head: Instructions | None, *uncounted: str, allow: float = 0.0
) -> list[ComparedFigure]:
    reasons = uncounted or ("", "")
    before, now = (
        ScenarioRecord("a-fp32", "a", "fp32", "precision", instructions=of, uncounted=reason)
        for of, reason in zip((base, head), reasons, strict=True)
    )
    sides = Sides(SideCase("a-fp32", None, {}), before, now, Limits(allowed=allow))
    return instructions.METRIC.compare(sides)


def test_a_comparison_has_every_judged_group() -> None:
    figures = compared(STORED, counted(step={PYTHON: 3_000_000}))
    outcomes: dict[str, Any] = {one.verdict.metric: one.verdict.outcome for one in figures}
    assert outcomes == {
        "instructions (kernels, a step)": Outcome.PASS,
        "instructions (kernels, a call)": Outcome.PASS,
        "instructions (python, a step)": Outcome.REGRESSION,
        "instructions (native, a step)": Outcome.PASS,
        "instructions (native, a call)": Outcome.PASS,
    }
    assert {
        one.verdict.outcome
        for one in compared(STORED, counted(step={PYTHON: 3_000_000}), allow=0.3)
    } == {Outcome.PASS}


def test_a_comparison_says_what_cannot_be_compared() -> None:
    figures = compared(STORED, counted(build={"torch": "2.14.0 (d5)"}))
    unjudged = [one for one in figures if one.verdict.outcome is Outcome.NOT_JUDGED]
    assert [one.verdict.metric for one in unjudged] == [
        "instructions (kernels)",
        "instructions (native)",
    ]
    assert all("torch 2.13.0 (c4) -> 2.14.0 (d5)" in one.reason for one in unjudged)
    (nothing,) = compared(STORED, counted(build={"torch": "2.14.0 (d5)", "python": "3.12.1 (aa)"}))
    assert nothing.verdict.outcome is Outcome.UNSUPPORTED


def test_a_comparison_says_which_side_was_not_counted_and_nothing_where_nobody_asked() -> None:
    (figure,) = compared(STORED, None, "", "crashed")
    assert figure.verdict.not_run == "head"
    assert figure.note == "instructions not compared: on head: crashed"
    (both,) = compared(None, None, "no Valgrind", "no Valgrind")
    assert both.verdict.not_run == "both"
    assert compared(None, None) == []


def test_what_a_refresh_says_of_them() -> None:
    old, new = entry(), entry(instructions=STORED)
    assert instructions.METRIC.changes(old, old) == []
    assert instructions.METRIC.changes(old, new) == ["instructions per step none -> 719.40 M"]
