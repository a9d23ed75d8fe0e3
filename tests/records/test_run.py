"""A run sums up its scenarios: each counts once, by its worst verdict."""

from __future__ import annotations

import math

import pytest

from fixtures.records.outcome import Outcome
from fixtures.records.run import RunRecord
from tests.support.runs import run_record, scenario_record, timing

RUN = run_record(
    scenario_record("a", Outcome.PASS, Outcome.PASS),
    scenario_record("b", Outcome.IMPROVEMENT),
    scenario_record("c", Outcome.PASS, Outcome.INCONCLUSIVE),
    scenario_record("d", Outcome.PASS, Outcome.REGRESSION, Outcome.INCONCLUSIVE),
    scenario_record("e", Outcome.NO_BASELINE),
    scenario_record("f", unsupported="no such device"),
    scenario_record("g"),
    scenario_record("h", Outcome.NOT_JUDGED, Outcome.PASS),
    scenario_record("i", Outcome.NOT_JUDGED),
)


def test_a_run_counts_every_scenario_once() -> None:
    assert RUN.summary(strict=False) == {
        "judged": 6,
        "passed": 3,
        "failed": 2,
        "undecided": 1,
        "unsupported": 1,
        "not judged": 2,
    }


def test_a_strict_run_fails_what_is_undecided_or_stale() -> None:
    assert RUN.summary(strict=True) == {
        "judged": 6,
        "passed": 2,
        "failed": 4,
        "undecided": 0,
        "unsupported": 1,
        "not judged": 2,
    }


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("a", "pass"),
        ("d", "regression"),
        ("f", "unsupported"),
        ("g", "not judged"),
        ("h", "pass"),
        ("i", "not judged"),
    ],
)
def test_the_outcome_of_a_scenario_is_the_worst_of_what_was_judged(name: str, outcome: str) -> None:
    assert RUN.scenarios[f"storybook-{name}"].outcome.value == outcome


@pytest.mark.parametrize("outcome", Outcome)
def test_a_run_is_judged_by_any_verdict_that_judges(outcome: Outcome) -> None:
    run = run_record(
        scenario_record("a", Outcome.NOT_JUDGED), scenario_record("b", Outcome.NOT_JUDGED, outcome)
    )
    assert run.judged is outcome.judges
    assert not run_record(scenario_record("c"), scenario_record("d", unsupported="no")).judged


def test_the_worst_verdict_speaks_for_a_scenario() -> None:
    record = RUN.scenarios["storybook-d"]
    assert record.verdict is record.verdicts[1]
    assert scenario_record("g").verdict is None


def test_a_note_is_kept_once_and_where_it_was_first_met() -> None:
    run = RunRecord(position=3)
    run.note("a note")
    run.position = 4
    run.note("a note")
    assert (run.notes, run.noted_at) == (["a note"], {"a note": 3})


def test_claims_are_counted_by_what_became_of_them() -> None:
    run = RunRecord()
    for what in ("hold", "missed", "hold"):
        run.count_claim(what)
    assert run.claims == {"hold": 2, "missed": 1}


def test_a_record_tells_peak_ratios_and_where_it_comes_from() -> None:
    record = scenario_record("fp16", peak_bytes=7, timings=[timing(0.5), timing(2.0)])
    assert record.peak_bytes == 7
    assert record.ratios == pytest.approx([0.5, 2.0])
    assert not record.is_simulated
    simulated = scenario_record("fp16", bound_ms=math.pi)
    assert simulated.is_simulated
    assert (simulated.peak_bytes, simulated.ratios) == (None, [])


def test_a_scenario_stands_under_its_own_name() -> None:
    with pytest.raises(ValueError, match="'other' calls itself 'storybook-fp16'"):
        RunRecord(scenarios={"other": scenario_record("fp16")})
