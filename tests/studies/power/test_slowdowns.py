"""Slowdowns of a known size."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from fixtures.devices import open_device
from fixtures.scenarios import Scenario, find_scenario
from fixtures.studies.power import slowdowns
from fixtures.studies.power.slowdowns import LATEST_S, PARTS, PASTIMES, SHORTEST_SLEEP_S, slowed
from tests.support.fake_device import FakeDevice

SCENARIO = find_scenario("storybook", "fp32")
TOOK_S = {"unet": 0.5, "scheduler": 0.25, "text encoder": 0.125}
STEPS = 3


class FakeClock:
    """Every clock of the module `time`; sleeping moves it, and wakes up late."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, late_s: float = 0.0) -> None:
        self.now_s = 0.0
        self.late_s = late_s
        self.slept_s: list[float] = []
        for name in ("thread_time", "perf_counter"):
            monkeypatch.setattr(time, name, lambda: self.now_s)
        monkeypatch.setattr(time, "sleep", self._sleep)

    def _sleep(self, for_s: float) -> None:
        self.slept_s.append(for_s)
        self.now_s += for_s + self.late_s


class Pipeline:
    """A pipeline whose parts take `TOOK_S` each time, and a second besides."""

    name = "the technique's own"

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        for part, (component, method) in PARTS.items():
            setattr(self, component, type(part, (), {method: self._takes(TOOK_S[part])})())

    def _takes(self, seconds: float) -> Any:
        def run(part: object, eta: float = 0.0) -> str:
            self._clock.now_s += seconds
            return "output"

        return run

    def __call__(self, *, without: str = "") -> str:
        self._clock.now_s += 1.0
        for part, times in (("text encoder", 2), ("unet", STEPS), ("scheduler", STEPS)):
            component, method = PARTS[part]
            for _ in range(times if part != without else 0):
                assert getattr(getattr(self, component), method)() == "output"
        return "image"


def of(pipeline: Any) -> Scenario:
    def apply(workload: Any, device: Any) -> Iterator[Any]:
        yield pipeline

    return replace(SCENARIO, technique=replace(SCENARIO.technique, apply=apply))


@pytest.mark.parametrize("share", [0.03, 0.5])
@pytest.mark.parametrize(
    ("where", "stretches"),
    [
        ("call", [1.0 + 2 * 0.125 + STEPS * 0.75]),
        ("unet", [0.5] * STEPS),
        ("scheduler", [0.25] * STEPS),
        ("text encoder", [0.125] * 2),
    ],
)
def test_a_slowdown_is_a_share_of_the_own_time_of_what_is_slowed_down(
    where: str, stretches: list[float], share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent_s = list[float]()
    monkeypatch.setitem(PASTIMES, "recorded", lambda: spent_s.append)
    plain = of(Pipeline(FakeClock(monkeypatch)))
    slower = slowed(plain, "recorded", share, where)
    with slower.technique.applied(SCENARIO.workload, FakeDevice()) as pipeline:
        assert pipeline() == "image"
        assert pipeline.name == "the technique's own"
    assert spent_s == [pytest.approx(share * own_s) for own_s in stretches]
    assert slower.id == SCENARIO.id
    assert slower.reference == SCENARIO.reference


@pytest.mark.parametrize("where", PARTS)
def test_a_part_that_did_not_run_is_no_sample(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    slower = slowed(of(Pipeline(FakeClock(monkeypatch))), "sleep", 0.1, where)
    with slower.technique.applied(SCENARIO.workload, FakeDevice()) as pipeline:
        assert pipeline() == "image"
        with pytest.raises(RuntimeError, match=f"the {where} did not run"):
            pipeline(without=where)


def test_a_part_is_as_before_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(monkeypatch)
    pipeline = Pipeline(clock)
    slower = slowed(of(pipeline), "sleep", 1.0, "unet")
    with slower.technique.applied(SCENARIO.workload, FakeDevice()) as applied:
        applied()
    before = len(clock.slept_s)
    assert before == STEPS
    pipeline()
    assert len(clock.slept_s) == before


@pytest.mark.parametrize("where", PARTS)
def test_every_part_of_the_embedded_pipeline_is_found_and_runs(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent_s = list[float]()
    monkeypatch.setitem(PASTIMES, "recorded", lambda: spent_s.append)
    slower = slowed(SCENARIO, "recorded", 0.1, where)
    with slower.technique.applied(SCENARIO.workload, open_device("cpu")) as pipeline:
        parameters = inspect.signature(pipeline.scheduler.step).parameters
        SCENARIO.workload.draw(pipeline, steps=SCENARIO.steps_of_timed_call)
    expected = 2 if where == "text encoder" else SCENARIO.workload.steps_of_timed_call
    assert len(spent_s) == expected
    assert all(one > 0 for one in spent_s)
    assert "eta" in parameters, "the pipeline asks for it"


def test_computing_ends_when_its_time_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    compute = PASTIMES["compute"]()
    now_s = [0.0]

    def ticking() -> float:
        now_s[0] += 0.001
        return now_s[0]

    monkeypatch.setattr(time, "thread_time", ticking)
    for for_s in (0.05, 0.002):
        start_s = now_s[0]
        compute(for_s)
        assert now_s[0] - start_s == pytest.approx(for_s + 0.001)


@pytest.mark.parametrize("for_s", [0.00002, 0.02])
def test_computing_takes_cpu_time_even_where_a_unit_is_longer(for_s: float) -> None:
    compute = PASTIMES["compute"]()
    off = []
    for _ in range(5):
        start_s = time.thread_time()
        compute(for_s)
        off.append(time.thread_time() - start_s - for_s)
    assert 0 <= min(off) < 0.0002


def test_sleeping_makes_up_for_waking_up_late(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(monkeypatch, late_s=LATEST_S / 2)
    sleep = PASTIMES["sleep"]()
    for _ in range(10):
        sleep(0.005)
    assert clock.now_s == pytest.approx(10 * 0.005 + LATEST_S / 2)


def test_a_wait_for_a_core_is_no_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(monkeypatch, late_s=1.0)
    sleep = PASTIMES["sleep"]()
    for _ in range(3):
        sleep(0.005)
    assert clock.slept_s == [pytest.approx(one) for one in (0.005, *[0.005 - LATEST_S] * 2)]


def test_short_sleeps_are_saved_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(monkeypatch)
    sleep = PASTIMES["sleep"]()
    for _ in range(16):
        sleep(SHORTEST_SLEEP_S / 8)
    assert clock.slept_s == [pytest.approx(SHORTEST_SLEEP_S)] * 2


def test_what_is_unknown_is_refused() -> None:
    with pytest.raises(KeyError, match="magic"):
        slowdowns.slowed(SCENARIO, "magic", 0.1, "call")
    with pytest.raises(KeyError, match="safety checker"):
        slowdowns.slowed(SCENARIO, "sleep", 0.1, "safety checker")
