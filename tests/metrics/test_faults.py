"""A leak, a race and state left behind fail wherever anything is judged."""

from __future__ import annotations

import pytest

from fixtures.metrics import faults
from fixtures.records.outcome import Outcome
from fixtures.records.record import CARRIED_OVER, LEAK, RACE, STATE
from fixtures.verdicts.case import Case, SideCase
from fixtures.verdicts.compared import Sides
from tests.support.runs import scenario_record

SENTENCES = {
    STATE: "leaving it did not restore autocast on CPU",
    RACE: "a kernel on stream 1 reads what stream 2 writes",
    CARRIED_OVER: "the same pipeline draws something else than when it was fresh",
    LEAK: "a call left 2.00 MiB allocated",
}


@pytest.mark.parametrize("kind", SENTENCES)
def test_each_fault_is_broken_and_no_command_accepts_it(kind: str) -> None:
    record = scenario_record("fp16", faults={kind: SENTENCES[kind]})
    [verdict] = faults.METRIC.judge(Case(record.id, None, {}), record)
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
    [alone] = faults.METRIC.judge(Case(sound.id, None, {}), sound)
    assert alone.outcome is Outcome.PASS
    [none] = faults.METRIC.compare(Sides(sides.case, sound, sound))
    assert (none.verdict.outcome, none.is_shown) == (Outcome.PASS, False)
