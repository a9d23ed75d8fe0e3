"""Numbers and nouns agree, and each reason is given once."""

from __future__ import annotations

from fixtures.metrics.quantity import counted
from fixtures.records.outcome import Outcome, Remedy
from fixtures.records.run import ScenarioRecord
from fixtures.report.table import not_judged
from tests.support.runs import scenario_record, verdict


def test_a_noun_agrees_with_its_number() -> None:
    told = [counted(number, noun) for noun in ("scenario", "process") for number in (0, 1, 2, 1000)]
    assert told[:4] == ["0 scenarios", "1 scenario", "2 scenarios", "1,000 scenarios"]
    assert told[4:] == ["0 processes", "1 process", "2 processes", "1,000 processes"]


def test_a_reason_that_differs_by_its_command_alone_is_given_once() -> None:
    def record(technique: str, why: str) -> ScenarioRecord:
        remedy = Remedy(f"nox -s refresh -- -k {technique}", "renew it with")
        name = f"storybook-{technique}"
        unjudged = verdict(name, Outcome.NOT_JUDGED, "counts", detail=why, remedy=remedy)
        return scenario_record(technique, verdicts=[unjudged])

    many = [record(name, "the baseline is older") for name in ("fp32", "fp16")]
    assert list(map(str, not_judged(many))) == ["counts: the baseline is older"]
    whole = "counts: the baseline is older; renew it with: nox -s refresh -- -k fp32"
    assert list(map(str, not_judged(many[:1]))) == [whole]
