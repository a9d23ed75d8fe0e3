"""Turns: who runs when, what a failing side means, and rounds that were disturbed."""

from __future__ import annotations

from typing import Any

import pytest

from fixtures.compare.rounds_in_turns import look_in_turns
from fixtures.measurement import ScenarioError
from fixtures.rounds import Plan
from fixtures.scenarios import Scenario, scenarios
from fixtures.verdicts import Outcome

SCENARIO = scenarios(["storybook"])[0]


class FakeSide:
    """A side whose rounds take as long as told; fails at an order, or is disturbed."""

    def __init__(self, name: str, log: list[str], busy_s: float = 0.1) -> None:
        self.name = name
        self.log = log
        self.busy_s = busy_s
        self.fails_at = ""
        self.disturbed_rounds: set[int] = set()
        self.rounds = 0

    def ask(self, do: str, scenario: Scenario | None = None) -> dict[str, Any]:
        self.log.append(f"{self.name} {do}")
        if do == self.fails_at:
            raise ScenarioError(Outcome.BROKEN, "it does not work")
        if do == "end":
            return {"evidence": {"load": 0.1, "steal": 0.0, "cpu_share": 0.3}}
        if do == "round":
            self.rounds += 1
            hot = "too hot" if self.rounds in self.disturbed_rounds else None
            return {"busy_s": self.busy_s, "wall_s": 2 * self.busy_s, "disturbance": hot}
        return {}


@pytest.fixture
def sides() -> tuple[FakeSide, FakeSide]:
    log: list[str] = []
    return FakeSide("base", log), FakeSide("head", log, busy_s=0.2)


def test_base_and_head_take_turns_in_every_group(sides: tuple[FakeSide, FakeSide]) -> None:
    base, head = sides
    timing = look_in_turns(base, head, SCENARIO, Plan(groups=2, pairs=2))
    rounds = [line.removesuffix(" round") for line in base.log if line.endswith(" round")]
    assert rounds == ["base", "head", "base", "head", "base"] * 2
    assert sorted(base.log[:2]) == ["base begin", "head begin"]
    assert base.log.count("base place") == base.log.count("head place") == 1
    assert timing.look.log_ratio == pytest.approx(0.6931, abs=1e-3)
    assert timing.busy_ms == pytest.approx(200)
    # Half of each round it ran; that it waited in between says nothing.
    assert timing.evidence.cpu_share == pytest.approx(0.5)


@pytest.mark.parametrize("order", ["begin", "place", "round", "end"])
def test_a_failing_head_is_its_failure_and_both_are_left(
    sides: tuple[FakeSide, FakeSide], order: str
) -> None:
    base, head = sides
    head.fails_at = order
    with pytest.raises(ScenarioError, match=r"^it does not work$") as caught:
        look_in_turns(base, head, SCENARIO, Plan(groups=2, pairs=1))
    assert caught.value.outcome is Outcome.BROKEN
    assert base.log[-2:] == ["base leave", "head leave"]


def test_a_failing_base_leaves_nothing_to_compare_with(sides: tuple[FakeSide, FakeSide]) -> None:
    base, head = sides
    base.fails_at = "round"
    with pytest.raises(ScenarioError, match="not compared: on base: it does not work") as caught:
        look_in_turns(base, head, SCENARIO, Plan(groups=2, pairs=1))
    assert caught.value.outcome is Outcome.UNSUPPORTED


def test_a_side_that_cannot_be_left_hides_no_failure(sides: tuple[FakeSide, FakeSide]) -> None:
    base, head = sides
    base.fails_at = "leave"
    assert look_in_turns(base, head, SCENARIO, Plan(groups=1, pairs=1)).groups


def test_disturbed_rounds_do_not_count_up_to_a_quarter(sides: tuple[FakeSide, FakeSide]) -> None:
    base, head = sides
    head.disturbed_rounds = {2}
    timing = look_in_turns(base, head, SCENARIO, Plan(groups=2, pairs=2))
    assert [len(group.log_ratios()) for group in timing.groups] == [1, 2]


def test_too_many_disturbed_rounds_decide_nothing(sides: tuple[FakeSide, FakeSide]) -> None:
    base, head = sides
    base.disturbed_rounds = {2}  # between two rounds of head, so that both pairs are lost
    with pytest.raises(ScenarioError, match="2 of 4 pairs of rounds were disturbed") as caught:
        look_in_turns(base, head, SCENARIO, Plan(groups=2, pairs=2))
    assert caught.value.outcome is Outcome.INCONCLUSIVE
