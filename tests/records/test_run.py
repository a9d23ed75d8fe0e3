"""A scenario is judged by its worst verdict, a run by any; what was alive at the peak."""

from __future__ import annotations

import pytest

from fixtures.records.outcome import Outcome
from fixtures.records.record import START, AtPeak, PeakRecorder
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


def test_the_peak_has_its_phase_and_who_holds_what_was_not_let_go_before() -> None:
    recorder = PeakRecorder()
    assert recorder.at_peak == AtPeak(START, {})
    recorder.change("text encoder made", 10)
    recorder.change("text encoder made", -10)
    recorder.change("denoiser weights", 100)
    recorder.phase = "denoiser"
    recorder.change("denoiser made", 50)
    recorder.change("denoiser made", -50)
    recorder.phase = "vae"
    recorder.change("vae made", 50)
    assert recorder.at_peak == AtPeak("denoiser", {"denoiser made": 50, "denoiser weights": 100})
