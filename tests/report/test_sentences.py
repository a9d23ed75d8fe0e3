"""A sentence in its parts: what a verdict says is told, and what all of them say is told once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.metrics.peak_memory import PEAK_MEMORY
from fixtures.records.outcome import Outcome
from fixtures.report.sentences import Said, said, told
from fixtures.verdicts.case import Case
from tests.support.runs import SOFTWARE, entry, verdict

NAME = "storybook-fp16"


@pytest.mark.parametrize(
    ("sentence", "parts"),
    [
        ("in effect", Said("in effect")),
        ("a: b; c: d", Said("a: b; c: d")),
        (
            "needs torchao: pip install torchao",
            Said("needs torchao", "", "", "pip install torchao"),
        ),
        (
            "no session; record one with: nox -s refresh",
            Said("no session", "", "record one with", "nox -s refresh"),
        ),
        (
            "needs a: '/my env/bin/python' -m pip install a",
            Said("needs a", "", "", "'/my env/bin/python' -m pip install a"),
        ),
        ("two\nlines; accept it with: nox -s x", Said("two\nlines; accept it with: nox -s x")),
    ],
)
def test_the_command_ends_a_sentence(sentence: str, parts: Said) -> None:
    assert said(sentence) == parts


@given(st.text())
def test_no_word_is_lost(sentence: str) -> None:
    parts = said(sentence)
    for part in (parts.text, parts.how, parts.command):
        assert part in sentence


@pytest.mark.parametrize("outcome", [Outcome.REGRESSION, Outcome.IMPROVEMENT, Outcome.PASS])
def test_what_a_case_says_is_understood(outcome: Outcome) -> None:
    """The sentences of real verdicts: another wording must not put the command into the text."""
    case = Case(NAME, entry(), {**SOFTWARE, "torch": "2.13.0"})
    found = told([case.verdict(PEAK_MEMORY, outcome, "peak memory is large; whole")] * 2)
    (line, _) = found.lines
    assert (line.metric, line.outcome, line.text) == (
        PEAK_MEMORY.name,
        outcome,
        "peak memory is large; whole",
    )
    commands = {
        Outcome.REGRESSION: {case.refresh: "accept it with"},
        Outcome.IMPROVEMENT: {case.refresh: "the baseline is stale, renew it with"},
        Outcome.PASS: {},
    }
    assert found.commands == commands[outcome]
    changed = ["changed since the baseline: torch 2.12.0 -> 2.13.0"]
    assert found.changed == (changed if outcome is Outcome.REGRESSION else [])


def test_the_worst_comes_first_and_what_was_not_judged_says_why() -> None:
    unknown = verdict(NAME, Outcome.NOT_JUDGED, "SSIM", detail="nobody looked")
    found = told([unknown, verdict(NAME), verdict(NAME, Outcome.BROKEN)], "changed: nothing")
    assert [line.outcome for line in found.lines] == [
        Outcome.BROKEN,
        Outcome.PASS,
        Outcome.NOT_JUDGED,
    ]
    assert found.lines[-1].text == "nobody looked"
    assert found.changed == ["changed: nothing"]
