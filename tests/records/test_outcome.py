"""Outcomes: their severity, which of them fail, and errors that carry them."""

from __future__ import annotations

import pytest

from fixtures.records.outcome import Outcome, ScenarioError, Verdict, worst


def test_the_most_severe_verdict_speaks_and_the_first_among_equals() -> None:
    verdicts = [Verdict("s", str(n), outcome, "") for n, outcome in enumerate(Outcome)]
    assert worst(verdicts).outcome is Outcome.BROKEN
    twins = [Verdict("s", name, Outcome.PASS, "") for name in ("first", "second")]
    assert worst(twins).metric == "first"


@pytest.mark.parametrize(
    ("outcome", "result", "strict"),
    [
        (Outcome.PASS, "passed", "passed"),
        (Outcome.IMPROVEMENT, "passed", "failed"),
        (Outcome.INCONCLUSIVE, "undecided", "failed"),
        (Outcome.REGRESSION, "failed", "failed"),
        (Outcome.NO_BASELINE, "failed", "failed"),
        (Outcome.NOT_ACTIVE, "failed", "failed"),
        (Outcome.BROKEN, "failed", "failed"),
        (Outcome.NOT_JUDGED, "not judged", "not judged"),
        (Outcome.UNSUPPORTED, "not judged", "not judged"),
    ],
)
def test_a_strict_run_fails_the_undecided_and_the_stale_and_neither_what_was_not_judged(
    outcome: Outcome, result: str, strict: str
) -> None:
    for is_strict, wanted in ((False, result), (True, strict)):
        assert outcome.result(strict=is_strict) == wanted
        assert outcome.fails(strict=is_strict) is (wanted == "failed")
    assert outcome.judges is (result != "not judged")


ERROR = ScenarioError("sd15-fp16", Outcome.BROKEN, "image 1 is black", side="head")


def test_an_error_is_a_sentence_that_begins_with_its_scenario() -> None:
    assert str(ERROR) == "sd15-fp16: image 1 is black"
    assert str(ScenarioError("", Outcome.BROKEN, "no device")) == "no device"


def test_an_error_is_a_verdict_on_what_it_left_unmeasured() -> None:
    verdict = ERROR.verdict("latency")
    assert verdict == Verdict("sd15-fp16", "latency", Outcome.BROKEN, ERROR.reason)
    assert verdict.sentence == str(ERROR)
