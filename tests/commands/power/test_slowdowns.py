"""Slowdowns of a known size."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from fixtures.commands.power import slowdowns
from fixtures.scenarios import find_scenario
from tests.support.fake_device import FakeDevice

SCENARIO = find_scenario("storybook", "sdpa")


@pytest.mark.parametrize("share", [0.03, 0.5])
def test_a_slowdown_is_a_share_of_the_call_s_own_cpu_time(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, spent_s = [0.0], list[float]()

    class Pipeline:
        name = "the technique's own"

        def __call__(self) -> str:
            now_s[0] += 2.0
            return "image"

    def apply(workload: Any, device: Any) -> Iterator[Any]:
        yield Pipeline()

    monkeypatch.setattr(time, "thread_time", lambda: now_s[0])
    monkeypatch.setitem(slowdowns.PASTIMES, "recorded", lambda: spent_s.append)
    plain = replace(SCENARIO, technique=replace(SCENARIO.technique, apply=apply))
    slower = slowdowns.slowed(plain, "recorded", share)
    with slower.technique.applied(SCENARIO.workload, FakeDevice()) as pipeline:
        assert pipeline() == "image"
        assert pipeline.name == "the technique's own"
    assert spent_s == [pytest.approx(2.0 * share)]
    assert slower.id == SCENARIO.id
    assert slower.reference == SCENARIO.reference


def test_computing_ends_when_its_time_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(1000))
    monkeypatch.setattr(time, "thread_time", lambda: float(next(ticks)))
    slowdowns.PASTIMES["compute"]()(5.0)
    assert next(ticks) == 6


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(KeyError, match="magic"):
        slowdowns.slowed(SCENARIO, "magic", 0.1)
