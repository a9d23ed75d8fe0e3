"""Samples of a refresh are taken in turn, and what fails leaves the others theirs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fixtures.catalogue.matrix import Scenario
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.records.timing import Timing
from fixtures.suite.refreshing import RoundRobin
from tests.support.fake_scenarios import fake_scenario
from tests.support.runs import timing


def test_all_are_sampled_in_turn_when_the_first_is_asked_for() -> None:
    order: list[str] = []
    names = ("idle", "a", "b", "c", "d")
    by_name = {name: fake_scenario(print, name) for name in names}

    def samples(scenario: Scenario) -> Iterator[Timing]:
        if scenario.technique.id == "idle":
            raise ScenarioError("idle", Outcome.NOT_ACTIVE, "not in effect")
        return sampled(scenario.technique.id)

    def sampled(name: str) -> Iterator[Timing]:
        for number in range(99):
            order.append(name)
            if (name, number) == ("b", 1):
                raise ScenarioError("b", Outcome.BROKEN, "it broke")
            yield timing(1 + number / 10)

    robin = RoundRobin(samples, [by_name[name] for name in names[:4]], 3)
    both = [robin.of(by_name["c"]) for _ in range(2)]
    assert order == []
    for taken in both:
        assert list(taken) == [timing(1.0), timing(1.1), timing(1.2)]
        for name, reason in (("b", "it broke"), ("idle", "not in effect")):
            with pytest.raises(ScenarioError, match=reason):
                list(robin.of(by_name[name]))
    assert order == ["a", "b", "c", "a", "b", "c", "a", "c"], "what fails is sampled no more"
    assert next(robin.of(by_name["d"])) == timing(1.0)
    assert order[8:] == ["d"]
