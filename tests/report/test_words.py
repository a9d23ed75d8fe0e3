"""Numbers and nouns agree; a ratio names what it is a ratio to."""

from __future__ import annotations

import pytest

from fixtures.metrics.latency import reference_of
from fixtures.records.outcome import Outcome, Remedy
from fixtures.records.run import ScenarioRecord
from fixtures.records.timing import Interval
from fixtures.report.words import judged, not_judged, titled
from fixtures.verdicts.quantity import counted
from tests.support.runs import scenario_record, verdict


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0 scenarios"), (1, "1 scenario"), (2, "2 scenarios"), (1000, "1,000 scenarios")],
)
def test_a_noun_agrees_with_its_number(number: int, words: str) -> None:
    assert counted(number, "scenario") == words
    assert counted(number, "process") == words.replace("scenarios", "processes").replace(
        "scenario", "process"
    )


def test_fp32_is_timed_against_the_control_workload_and_the_others_against_fp32() -> None:
    frozen = scenario_record("fp32", timed_against="the frozen reference")
    assert reference_of(frozen) == "the frozen reference"
    assert reference_of(scenario_record("fp32")) == "the control workload"
    assert reference_of(scenario_record("fp16", speedup=Interval(1.0, 0.9, 1.1))) == "fp32"


def test_a_group_is_judged_by_its_worst_verdict_and_by_none_of_another() -> None:
    name = "storybook-fp16"
    one = scenario_record("fp16")
    one.verdicts = [
        verdict(name, Outcome.PASS, "latency ratio"),
        verdict(name, Outcome.NOT_JUDGED, "latency"),
        verdict(name, Outcome.NOT_JUDGED, "counts"),
        verdict(name, Outcome.PASS, "SSIM"),
        verdict(name, Outcome.REGRESSION, "FLIP"),
    ]
    outcomes = judged(one)
    known = {"latency": Outcome.PASS, "image": Outcome.REGRESSION}
    assert {name: outcomes.pop(name) for name in known} == known
    assert set(outcomes.values()) == {Outcome.NOT_JUDGED}


def test_a_workload_is_titled_with_its_weights_as_far_as_they_are_known() -> None:
    known = scenario_record("fp16", weights="embedded")
    assert titled("storybook", [known, known]) == "storybook (weights: embedded)"
    assert titled("storybook", [scenario_record("fp16")]) == "storybook"


def test_a_reason_that_differs_by_its_command_alone_is_given_once() -> None:
    def record(technique: str, why: str) -> ScenarioRecord:
        remedy = Remedy(f"nox -s refresh -- -k {technique}", "renew it with")
        name = f"storybook-{technique}"
        one = verdict(name, Outcome.NOT_JUDGED, "counts", detail=why, remedy=remedy)
        return scenario_record(technique, verdicts=[one])

    many = [record(name, "the baseline is older") for name in ("fp32", "fp16")]
    assert list(map(str, not_judged(many))) == ["counts: the baseline is older"]
    whole = "counts: the baseline is older; renew it with: nox -s refresh -- -k fp32"
    assert list(map(str, not_judged(many[:1]))) == [whole]
