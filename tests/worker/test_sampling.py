"""Samplers: both sides are timed, and closed whatever happens."""

from __future__ import annotations

import math

import pytest

from fixtures.records.outcome import ScenarioError
from fixtures.records.timing import Timing
from fixtures.worker.rounds import Plan
from fixtures.worker.sampling import time_pair
from tests.support.fake_scenarios import fake_scenario
from tests.support.fake_timed import FakeTimed

PLAN = Plan(groups=2, pairs=2)
SCENARIO = fake_scenario(lambda steps=None: None)


def across(base: FakeTimed, head: FakeTimed, *, shares_core: bool = False) -> Timing:
    return time_pair(SCENARIO, PLAN, base, head, shares_core=shares_core)


@pytest.mark.parametrize("shares_core", [False, True])
def test_head_is_timed_beside_base_which_is_the_reference(shares_core: bool) -> None:
    base, head = FakeTimed(share=0.5), FakeTimed(lambda number: 1.1, share=0.8)
    timing = across(base, head, shares_core=shares_core)
    assert timing.sample.log_ratio == pytest.approx(math.log(1.1))
    assert timing.judged_ms == pytest.approx(1100)
    assert (base.closed, head.closed) == (1, 1)
    assert (base.rounds == 0) == shares_core


@pytest.mark.parametrize(
    ("fails", "side", "shares_core"),
    [
        *((fails, side, False) for fails in ("place", "round") for side in (0, 1)),
        *((fails, 0, True) for fails in ("place", "start_calls", "stop_calls")),
    ],
)
def test_both_sides_are_closed_whichever_fails(fails: str, side: int, shares_core: bool) -> None:
    sides = FakeTimed(), FakeTimed()
    sides[side].fails = fails
    with pytest.raises(ScenarioError, match=f"{fails} failed"):
        across(*sides, shares_core=shares_core)
    assert [each.closed for each in sides] == [1, 1]
