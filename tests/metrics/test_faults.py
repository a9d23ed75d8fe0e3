"""A leak, a race and state left behind fail wherever anything is judged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fixtures.metrics import faults
from fixtures.metrics.case import Case, SideCase
from fixtures.records.outcome import Outcome
from fixtures.records.record import CARRIED_OVER, LEAK, RACE, STATE
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
    case: Case = SideCase(base.id, None, {}, base=base)
    outcomes = {verdict.metric: verdict.outcome for verdict in faults.METRIC.judge(case, head)}
    assert outcomes == {
        "faults (race)": Outcome.PASS,
        "faults (state left behind)": Outcome.BROKEN,
        "faults (leak)": Outcome.IMPROVEMENT,
    }
    grown = replace(base, faults={**base.faults, LEAK: "a call left 2.00 GiB allocated"})
    worse = {verdict.metric: verdict for verdict in faults.METRIC.judge(case, grown)}
    assert worse["faults (leak)"].outcome is Outcome.BROKEN
    assert worse["faults (leak)"].text.endswith("2.00 GiB allocated; on base: " + SENTENCES[LEAK])
    sound = scenario_record("fp16")
    for case in (Case(sound.id, None, {}), SideCase(sound.id, None, {}, base=sound)):
        [none] = faults.METRIC.judge(case, sound)
        assert (none.outcome, none.measured, none.baseline) == (Outcome.PASS, 0, 0)
