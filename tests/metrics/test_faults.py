"""A leak, a race and state left behind fail wherever anything is judged."""

from __future__ import annotations

import pytest

from fixtures.metrics import BY_OPTION, faults, option_of
from fixtures.metrics.faults import CARRIED_OVER, LEAK, RACE, STATE
from fixtures.records.outcome import Outcome
from fixtures.verdicts.case import Case, SideCase
from fixtures.verdicts.compared import Sides
from tests.support.runs import scenario_record

SENTENCES = {
    STATE: "leaving it did not restore autocast on CPU",
    RACE: "a kernel on stream 1 reads what stream 2 writes",
    CARRIED_OVER: "the same pipeline draws something else than when it was fresh",
    LEAK: "a call left 2.00 MiB allocated",
}
CASE = Case("storybook-fp16", None, {})


def test_without_a_fault_it_passes_with_no_baseline_at_all() -> None:
    [verdict] = faults.METRIC.judge(CASE, scenario_record("fp16"))
    assert verdict.outcome is Outcome.PASS


@pytest.mark.parametrize("kind", SENTENCES)
def test_each_fault_is_broken_and_no_command_accepts_it(kind: str) -> None:
    record = scenario_record("fp16", faults={kind: SENTENCES[kind]})
    [verdict] = faults.METRIC.judge(CASE, record)
    assert verdict.outcome is Outcome.BROKEN
    assert verdict.sentence == f"storybook-fp16: {SENTENCES[kind]}"
    assert verdict.outcome.fails(strict=False)


def test_of_two_sides_a_new_fault_fails_a_lost_one_is_a_gain_and_an_old_one_neither() -> None:
    base = scenario_record("fp16", faults={RACE: SENTENCES[RACE], LEAK: SENTENCES[LEAK]})
    head = scenario_record("fp16", faults={RACE: SENTENCES[RACE], STATE: SENTENCES[STATE]})
    sides = Sides(SideCase(base.id, None, {}), base, head)
    outcomes = {
        figure.verdict.metric: figure.verdict.outcome for figure in faults.METRIC.compare(sides)
    }
    assert outcomes == {
        "faults (race)": Outcome.PASS,
        "faults (state left behind)": Outcome.BROKEN,
        "faults (leak)": Outcome.IMPROVEMENT,
    }
    assert faults.METRIC.compare(Sides(sides.case, base, base))[0].verdict.outcome is Outcome.PASS
    sound = scenario_record("fp16")
    [none] = faults.METRIC.compare(Sides(sides.case, sound, sound))
    assert (none.verdict.outcome, none.is_shown) == (Outcome.PASS, False)


def test_a_bisection_asks_for_it_by_its_option() -> None:
    assert option_of("faults (leak)") == "faults"
    assert BY_OPTION["faults"] is faults.METRIC
