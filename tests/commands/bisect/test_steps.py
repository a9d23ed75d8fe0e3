"""Steps: what a comparison says of a candidate."""

from __future__ import annotations

from typing import Any

import pytest

from fixtures.commands.bisect.steps import Criterion, Step, StepOutcome
from fixtures.commands.compare.comparing import Compared, not_run, verdicts_on
from fixtures.commands.errors import CommandError
from fixtures.metrics.case import SideCase
from fixtures.metrics.latency_verdicts import LATENCY
from fixtures.records.counts import FLOPS as FLOPS_TOTAL
from fixtures.records.outcome import Outcome, Verdict
from fixtures.records.run import RunRecord
from tests.support.counting import counted, host_calls
from tests.support.runs import failure, run_record, scenario_record

GOOD, BAD, SKIPPED = StepOutcome.GOOD, StepOutcome.BAD, StepOutcome.SKIPPED
NAME = "sd15-bf16"


def figure(metric: str, outcome: Outcome, base: float, head: float) -> Verdict:
    return Verdict(NAME, metric, outcome, "a sentence", head, base)


def compared(*verdicts: Verdict) -> Compared:
    return Compared(RunRecord(), RunRecord(), verdicts)


SAME = figure("operations", Outcome.PASS, 14, 14)
MORE = figure("operations", Outcome.REGRESSION, 14, 15)
LESS = figure("operations", Outcome.IMPROVEMENT, 14, 13)
FLOPS = figure("flops", Outcome.REGRESSION, 1, 2)
UNDECIDED = figure("latency", Outcome.INCONCLUSIVE, 1, 1)
BROKEN = failure(Outcome.BROKEN, "not compared: on base")
FAILS = not_run(NAME, head=BROKEN)
ABSENT = not_run(NAME, head=failure(Outcome.UNSUPPORTED, "no"))
NO_GOOD = not_run(NAME, base=BROKEN)
NEITHER = not_run(NAME, base=BROKEN, head=BROKEN)
UNTIMED = not_run(NAME, base=BROKEN, metric=LATENCY)


@pytest.mark.parametrize(
    ("direction", "figures", "outcome"),
    [
        ("worse", [SAME], GOOD),
        ("worse", [SAME, MORE], BAD),
        ("worse", [LESS], GOOD),
        ("better", [LESS], BAD),
        ("better", [MORE], GOOD),
        ("any", [LESS], BAD),
        ("any", [MORE], BAD),
        ("any", [SAME], GOOD),
        ("worse", [FAILS], BAD),
        ("better", [FAILS], SKIPPED),
        ("any", [FAILS], BAD),
        ("worse", [ABSENT], SKIPPED),
        ("worse", [UNDECIDED], SKIPPED),
        ("worse", [UNDECIDED, MORE], BAD),
    ],
)
def test_a_candidate_is_what_its_comparison_says(
    direction: str, figures: list[Verdict], outcome: StepOutcome
) -> None:
    criterion = Criterion("counts", direction)
    assert Step.of(compared(*figures), criterion).outcome is outcome


def test_one_count_can_be_asked_about_alone() -> None:
    criterion = Criterion("operations", "worse")
    assert criterion.compared == "counts"
    assert Step.of(compared(SAME, FLOPS), criterion).outcome is GOOD
    assert Step.of(compared(SAME, FLOPS), Criterion("flops", "worse")).outcome is BAD
    assert Step.of(compared(FAILS), criterion).outcome is BAD


def test_figures_are_said_and_what_is_equal_is_not() -> None:
    step = Step.of(compared(SAME, MORE), Criterion("counts", "worse"))
    assert step.figures == "sd15-bf16 operations 14 -> 15 (+7.1 %)"
    assert Step.of(compared(SAME), Criterion("counts", "worse")).figures == ("as in the good one")


@pytest.mark.parametrize("figure", [NO_GOOD, NEITHER, UNTIMED])
def test_a_good_one_that_cannot_be_measured_ends_it(figure: Verdict) -> None:
    with pytest.raises(CommandError, match=f"the good one cannot be measured: {NAME}: "):
        Step.of(compared(figure), Criterion("counts", "worse"))


def test_a_metric_that_nothing_measures_ends_it() -> None:
    with pytest.raises(CommandError, match="latency is not measured here"):
        Step.of(compared(), Criterion("latency", "worse"))


@pytest.mark.parametrize(
    ("metric", "fields"),
    [("flops", {"counts": counted({FLOPS_TOTAL: 9})}), ("empty_cache", {"counts": host_calls()})],
)
def test_a_count_that_is_equal_is_good_and_one_that_nobody_has_ends_it(
    metric: str, fields: dict[str, Any]
) -> None:
    criterion = Criterion(metric, "worse")
    base = run_record(scenario_record("bf16", **fields))
    step = Step.of(Compared(base, RunRecord(), (SAME,)), criterion)
    assert (step.outcome, step.figures) == (GOOD, "as in the good one")
    with pytest.raises(CommandError, match=f"{metric} is not measured here"):
        Step.of(compared(SAME), criterion)


@pytest.mark.parametrize("metric", ["component_calls", "faults"])
def test_a_candidate_that_is_equal_in_what_has_no_total_is_good(metric: str) -> None:
    record = scenario_record("bf16", counts=counted(components={"denoiser (batch of 2)": 3}))
    run, case = run_record(record), SideCase(record.id, None, {}, base=record)
    equal = Compared(run, run, verdicts_on(record, case, [metric]))
    assert Step.of(equal, Criterion(metric, "worse")).outcome is GOOD
    assert equal.compared == {record.id}


def test_a_call_of_the_runtime_is_asked_about_with_the_host_s_calls() -> None:
    criterion = Criterion("empty_cache", "worse")
    assert criterion.compared == "host_calls"
    more = figure("empty_cache (a step)", Outcome.REGRESSION, 0, 12)
    assert Step.of(compared(more), criterion).outcome is BAD
    assert Criterion("host_calls", "worse").compared == "host_calls"
