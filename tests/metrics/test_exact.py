"""The common form of a metric of counts: stored, judged, compared, without anything of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from fixtures.metrics.exact import exact_metric
from fixtures.records.outcome import Outcome, Verdict
from fixtures.records.run import ScenarioRecord
from fixtures.verdicts.case import Case, SideCase
from fixtures.verdicts.compared import Sides
from fixtures.verdicts.limits import Limits
from tests.support.runs import entry, scenario_record

METRIC = exact_metric("graphs", "graphs")
STORED = {"blocks": 100, "whole": 40}


def record(counts: Mapping[str, int]) -> ScenarioRecord:
    return scenario_record("fp16", figures={"graphs": counts} if counts else {})


def judged(now: Mapping[str, int], stored: Mapping[str, int] | None = STORED) -> Verdict:
    known = None if stored is None else entry(figures={"graphs": stored} if stored else {})
    [verdict] = METRIC.judge(Case("storybook-fp16", known, {}), record(now))
    return verdict


@pytest.mark.parametrize(
    ("now", "outcome"),
    [
        (STORED, Outcome.PASS),
        ({"blocks": 101, "whole": 40}, Outcome.REGRESSION),
        ({"blocks": 100, "whole": 40, "new": 1}, Outcome.REGRESSION),
        # Less of one does not make up for more of another.
        ({"blocks": 50, "whole": 41}, Outcome.REGRESSION),
        ({"blocks": 95, "whole": 40}, Outcome.IMPROVEMENT),
        ({"blocks": 10, "whole": 4}, Outcome.BROKEN),
        ({}, Outcome.BROKEN),
    ],
)
def test_any_change_of_a_count_is_a_verdict(now: Mapping[str, int], outcome: Outcome) -> None:
    assert judged(now).outcome is outcome


def test_what_changed_is_named() -> None:
    assert "blocks 100 -> 108" in judged({"blocks": 108, "whole": 40}).sentence


def test_what_is_not_stored_is_not_judged_or_has_no_baseline() -> None:
    older = judged(STORED, stored={})
    assert older.outcome is Outcome.NOT_JUDGED
    assert "older than this metric; renew all with: nox -s refresh" in older.sentence
    assert judged(STORED, stored=None).outcome is Outcome.NO_BASELINE
    assert judged({}, stored={}).outcome is Outcome.NOT_JUDGED


@pytest.mark.parametrize(
    ("blocks", "outcome"),
    [(101, Outcome.PASS), (102, Outcome.REGRESSION), (98, Outcome.IMPROVEMENT)],
)
def test_between_two_sides_the_material_changes_are_verdicts(blocks: int, outcome: Outcome) -> None:
    sides = Sides(SideCase("storybook-fp16", None, {}), record(STORED), record(STORED))
    [equal] = METRIC.compare(sides)
    assert (equal.base, equal.verdict.outcome, equal.is_shown) == (140, Outcome.PASS, False)
    for older in (replace(sides, base=record({})), replace(sides, head=record({}))):
        assert METRIC.compare(older) == [], "a side has not counted it"
    head = record({**STORED, "blocks": blocks})
    [figure] = METRIC.compare(replace(sides, head=head))
    assert (figure.base, figure.head, figure.verdict.outcome) == (100, blocks, outcome)
    [exact] = METRIC.compare(replace(sides, head=head, limits=Limits(exact=True)))
    assert exact.verdict.outcome is not Outcome.PASS


def test_a_refresh_says_what_it_was_and_stored_runs_are_compared_by_it() -> None:
    old, new = (entry(figures={"graphs": {"whole": count}}) for count in (40, 44))
    assert METRIC.changes(old, new) == ["graphs 40 -> 44"]
    assert METRIC.changes(entry(), entry()) == []
    assert {name: value for name, (_, value) in METRIC.figures(record(STORED)).items()} == {
        "graphs (blocks)": 100,
        "graphs (whole)": 40,
    }
