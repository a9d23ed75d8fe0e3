"""Steps: what a comparison says of a candidate, kept so that an interrupted one goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.bisect.halving import Answer, first_bad
from fixtures.bisect.steps import KeptSteps, Question, Step, StepsError, answering
from fixtures.compare.judging import metric_of
from fixtures.compare.rows import Row
from fixtures.compare.run import Compared
from fixtures.report.record import RunRecord
from fixtures.verdicts import Outcome, Verdict


def compared(*rows: tuple[str, Outcome, float | None, float | None, str]) -> Compared:
    """A comparison with these rows: metric, outcome, base, head and sentence."""
    return Compared(
        RunRecord(),
        RunRecord(),
        [
            Row(Verdict("sd15-bf16", metric, outcome, sentence), metric_of(metric), base, head)
            for metric, outcome, base, head, sentence in rows
        ],
    )


SAME = ("operations", Outcome.PASS, 14, 14, "")
MORE = ("operations", Outcome.REGRESSION, 14, 15, "")
LESS = ("operations", Outcome.IMPROVEMENT, 14, 13, "")
FLOPS = ("flops", Outcome.REGRESSION, 1, 2, "")
FAILS = ("run", Outcome.BROKEN, None, None, "sd15-bf16: runs on base, and on head: no")
ABSENT = ("run", Outcome.UNSUPPORTED, None, None, "sd15-bf16: not compared: on head: no")
NO_GOOD = ("run", Outcome.UNSUPPORTED, None, None, "sd15-bf16: not compared: on base: no")
UNDECIDED = ("latency", Outcome.INCONCLUSIVE, 1, 1, "sd15-bf16: a loss of up to 9 %")


@pytest.mark.parametrize(
    ("direction", "rows", "answer"),
    [
        ("worse", [SAME], "good"),
        ("worse", [SAME, MORE], "bad"),
        ("worse", [LESS], "good"),
        ("better", [LESS], "bad"),
        ("better", [MORE], "good"),
        ("any", [LESS], "bad"),
        ("any", [MORE], "bad"),
        ("any", [SAME], "good"),
        ("worse", [FAILS], "bad"),
        ("better", [FAILS], "good"),
        ("worse", [ABSENT], "skipped"),
        ("worse", [UNDECIDED], "skipped"),
        ("worse", [UNDECIDED, MORE], "bad"),
    ],
)
def test_a_candidate_is_what_its_comparison_says(
    direction: str, rows: list[tuple[str, Outcome, float, float, str]], answer: str
) -> None:
    question = Question("counters", direction)
    assert Step.of("0.40.0", compared(*rows), question).answer == answer


def test_one_counter_can_be_asked_about_alone() -> None:
    question = Question("operations", "worse")
    assert question.compared == "counters"
    assert Step.of("0.40.0", compared(SAME, FLOPS), question).answer == "good"
    assert Step.of("0.40.0", compared(SAME, FLOPS), Question("flops", "worse")).answer == "bad"
    assert Step.of("0.40.0", compared(FAILS), question).answer == "bad"


def test_figures_are_said_and_what_is_equal_is_not() -> None:
    step = Step.of("0.40.0", compared(SAME, MORE), Question("counters", "worse"))
    assert step.figures == "sd15-bf16 operations 14 -> 15 (+7.1 %)"
    assert Step.of("0.40.0", compared(SAME), Question("counters", "worse")).figures == (
        "as in the good one"
    )


def test_a_good_one_that_cannot_be_measured_ends_it() -> None:
    with pytest.raises(StepsError, match="the good one cannot be measured"):
        Step.of("0.40.0", compared(NO_GOOD), Question("counters", "worse"))


def test_a_metric_that_nothing_measures_ends_it() -> None:
    with pytest.raises(StepsError, match="latency is not measured here"):
        Step.of("0.40.0", compared(), Question("latency", "worse"))


class Bisecting:
    """A row of releases that is bad from 13 on, and a count of what was measured."""

    def __init__(self, folder: Path, killed_at: int = 99) -> None:
        self.kept = KeptSteps.of(folder, ["these", "words"])
        self.killed_at = killed_at
        self.measured: list[str] = []
        self.said: list[str] = []

    def take(self, name: str) -> Step:
        if len(self.measured) == self.killed_at:
            raise KeyboardInterrupt
        self.measured.append(name)
        return Step(name, (Answer.BAD if int(name) >= 13 else Answer.GOOD).value, "figures")

    def run(self) -> int:
        test = answering(self.kept, self.take, self.said.append)
        return first_bad(24, lambda place: test(str(place))).first_bad


def test_killed_in_the_middle_and_started_again_it_goes_on(tmp_path: Path) -> None:
    first = Bisecting(tmp_path, killed_at=2)
    with pytest.raises(KeyboardInterrupt):
        first.run()
    second = Bisecting(tmp_path)
    assert second.run() == 13
    assert not set(first.measured) & set(second.measured)
    assert len(first.measured) + len(second.measured) <= 5
    assert sum("(kept from before)" in line for line in second.said) == 2


def test_another_question_has_its_own_steps(tmp_path: Path) -> None:
    KeptSteps.of(tmp_path, ["one"]).put(Step("0.40.0", "bad", ""))
    assert not KeptSteps.of(tmp_path, ["other"]).steps
    assert KeptSteps.of(tmp_path, ["one"]).steps


def test_steps_can_be_forgotten_and_a_spoilt_file_is_no_end(tmp_path: Path) -> None:
    kept = KeptSteps.of(tmp_path, ["one"])
    kept.put(Step("0.40.0", "bad", ""))
    kept.path.write_text("{")
    assert not kept.reread().steps
    kept.put(Step("0.40.0", "bad", ""))
    kept.forget()
    assert not KeptSteps.of(tmp_path, ["one"]).steps
    assert not kept.path.exists()


def test_a_step_that_cannot_be_kept_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = KeptSteps.of(tmp_path / "file", ["one"])
    with pytest.raises(StepsError, match="cannot be written"):
        kept.put(Step("0.40.0", "bad", ""))
