"""A scenario is judged by its worst verdict, a run by any; claims are counted."""

from __future__ import annotations

import pytest

from fixtures.records.outcome import Outcome
from fixtures.records.run import RunRecord
from tests.support.runs import run_record, scenario_record


@pytest.mark.parametrize(
    ("outcomes", "worst"),
    [
        ((Outcome.PASS, Outcome.REGRESSION, Outcome.INCONCLUSIVE), Outcome.REGRESSION),
        ((Outcome.NOT_JUDGED, Outcome.PASS), Outcome.PASS),
        ((Outcome.NOT_JUDGED,), Outcome.NOT_JUDGED),
        ((), Outcome.NOT_JUDGED),
    ],
)
def test_the_outcome_of_a_scenario_is_the_worst_of_what_was_judged(
    outcomes: tuple[Outcome, ...], worst: Outcome
) -> None:
    record = scenario_record("a", *outcomes)
    assert record.outcome is worst
    said = {verdict.outcome: verdict for verdict in record.verdicts}
    assert record.verdict is said.get(worst)
    unsupported = scenario_record("a", *outcomes, unsupported="no such device")
    assert unsupported.outcome is Outcome.UNSUPPORTED


@pytest.mark.parametrize("outcome", Outcome)
def test_a_run_is_judged_by_any_verdict_that_judges(outcome: Outcome) -> None:
    run = run_record(
        scenario_record("a", Outcome.NOT_JUDGED), scenario_record("b", Outcome.NOT_JUDGED, outcome)
    )
    assert run.judged is outcome.judges
    assert not run_record(scenario_record("c"), scenario_record("d", unsupported="no")).judged


def test_claims_are_counted_by_what_became_of_them() -> None:
    run = RunRecord()
    for what in ("hold", "missed", "hold"):
        run.count_claim(what)
    assert run.claims == {"hold": 2, "missed": 1}
