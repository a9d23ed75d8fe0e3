"""Samplers in this process and elsewhere: both sides are timed, and closed whatever happens."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import psutil
import pytest

from fixtures.measuring.rounds import Plan, Round, Timed
from fixtures.measuring.sampler import (
    Sampler,
    TimedElsewhere,
    beside_its_reference,
    cross_env_sampler,
    left,
)
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.records.timing import Evidence
from fixtures.scenarios import Scenario
from tests.support.fake_device import FakeDevice
from tests.support.fake_scenarios import STEPS, FakeScenario, fake_scenario

PLAN = Plan(groups=2, pairs=2)
SCENARIO = fake_scenario(lambda steps=None: None)


# In this process


class Bench:
    """A reference and a candidate on a fake device; both note when they are built and left."""

    def __init__(self, act: Callable[[str, int], None] = lambda name, call: None) -> None:
        self.device = FakeDevice()
        self.log: list[str] = []
        self._act = act
        reference = self._scenario("fp32", 1.0)
        self.scenario = self._scenario("C", 1.5, others={"fp32": reference})

    def _scenario(
        self, name: str, seconds: float, others: dict[str, Scenario] | None = None
    ) -> FakeScenario:
        timed = 0

        def draw(steps: int | None = None) -> None:
            nonlocal timed
            if steps == STEPS:
                timed += 1
                self._act(name, timed)
                self.device.now_s += seconds

        return fake_scenario(
            draw,
            name,
            enter=lambda: self.log.append(f"build {name}"),
            leave=lambda: self.log.append(f"leave {name}"),
            others=others,
        )

    @property
    def is_left(self) -> bool:
        """Whether everything that was built was left, once."""
        built, gone = (
            sorted(entry.split()[1] for entry in self.log if entry.startswith(what))
            for what in ("build", "leave")
        )
        return built == gone == ["C", "fp32"]


def test_a_scenario_is_sampled_beside_its_reference_and_both_are_left() -> None:
    bench = Bench()
    timing = beside_its_reference(bench.device)(bench.scenario, PLAN)
    assert len(timing.groups) == PLAN.groups
    assert timing.sample.log_ratio == pytest.approx(math.log(1.5))
    assert bench.is_left


@pytest.mark.parametrize("name", ["fp32", "C"])
@pytest.mark.parametrize("call", [1, 4], ids=["at first", "later"])
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_a_side_that_fails_leaves_neither_open(
    name: str, call: int, error: type[BaseException]
) -> None:
    def act(drawing: str, timed: int) -> None:
        if (drawing, timed) == (name, call):
            raise error

    bench = Bench(act)
    with pytest.raises(ScenarioError if error is ZeroDivisionError else error):
        beside_its_reference(bench.device)(bench.scenario, PLAN)
    assert bench.is_left


def test_a_round_that_takes_no_time_is_a_broken_scenario() -> None:
    frozen = fake_scenario(lambda steps=None: None, "fp32")
    scenario = fake_scenario(lambda steps=None: None, others={"fp32": frozen})
    with pytest.raises(ScenarioError, match="a round lasts a finite time above zero") as caught:
        beside_its_reference(FakeDevice())(scenario, PLAN)
    assert caught.value.outcome is Outcome.BROKEN


def test_a_control_workload_that_fails_is_a_broken_scenario(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(torch_device: object) -> None:
        raise MemoryError("injected")

    monkeypatch.setattr("fixtures.measuring.control.ControlWorkload", fail)
    with pytest.raises(ScenarioError, match="fake-fp32: ran out of memory on fake"):
        beside_its_reference(FakeDevice())(fake_scenario(lambda steps=None: None, "fp32"), PLAN)


# Elsewhere


class Side:
    """A process elsewhere that judges a round by its CPU time, a share of the wall's.

    Args:
        name: in the log.
        log: of what both sides did.
        judged_s: how long each round takes on the judged clock.
        share: of the wall time that it is running in a round.
        fails: what raises, the name of a method.
        pid: its process.
    """

    def __init__(
        self,
        name: str,
        log: list[str],
        judged_s: float,
        share: float = 1.0,
        fails: str = "",
        pid: int | None = None,
    ) -> None:
        self._name = name
        self._log = log
        self._judged_s = judged_s
        self._share = share
        self._fails = fails
        self.pid = pid

    def timed(self, scenario: Scenario) -> TimedElsewhere:
        self._do("timed")
        return self

    def place(self) -> None:
        self._do("place")

    def round(self) -> Round:
        self._do("round")
        return Round(self._judged_s, self._judged_s / self._share)

    def start_calls(self) -> None:
        self._do("start_calls")

    def stop_calls(self) -> list[Round]:
        self._do("stop_calls")
        return [Round(self._judged_s, 10.0, ended_s=0.0)]

    def evidence(self) -> Evidence:
        self._do("evidence")
        return Evidence(load=0.5, steal=0.0, cpu_share=0.1)

    def close(self) -> None:
        self._do("close")

    def _do(self, what: str) -> None:
        self._log.append(f"{what} {self._name}")
        if what == self._fails:
            raise ScenarioError("s", Outcome.BROKEN, f"{what} failed", side=None)


def place_both(base: Timed, head: Timed) -> None:
    for side in (base, head):
        side.place()


def interleaved(base: Side, head: Side) -> Sampler:
    """Their rounds alternate."""
    return cross_env_sampler(base, head, place_both, shares_core=False)


def test_head_is_timed_beside_base_which_is_the_reference() -> None:
    log: list[str] = []
    sample = interleaved(Side("base", log, 1.0), Side("head", log, 1.1))
    timing = sample(SCENARIO, PLAN)
    assert timing.sample.log_ratio == pytest.approx(math.log(1.1))
    assert timing.judged_ms == pytest.approx(1100)
    assert log[-2:] == ["close head", "close base"]


def test_its_share_of_the_processor_is_that_of_its_rounds_alone() -> None:
    base, head = Side("base", [], 1.0, share=0.5), Side("head", [], 1.0, share=0.8)
    timing = interleaved(base, head)(SCENARIO, PLAN)
    assert timing.evidence.cpu_share == pytest.approx(0.8)
    assert timing.evidence.load == 0.5
    faster = Side("head", [], 1.0, share=2.0)
    assert interleaved(base, faster)(SCENARIO, PLAN).evidence.cpu_share == 1.0


@pytest.mark.parametrize("side", ["base", "head"])
@pytest.mark.parametrize("fails", ["place", "round", "close"])
def test_both_sides_are_closed_whichever_fails(side: str, fails: str) -> None:
    log: list[str] = []
    base = Side("base", log, 1.0, fails=fails if side == "base" else "")
    head = Side("head", log, 1.0, fails=fails if side == "head" else "")
    with pytest.raises(ScenarioError, match=f"{fails} failed"):
        interleaved(base, head)(SCENARIO, PLAN)
    assert log.count("close base") == log.count("close head") == 1


def test_a_side_that_cannot_be_opened_leaves_the_other_closed() -> None:
    log: list[str] = []
    base, head = Side("base", log, 1.0), Side("head", log, 1.0, fails="timed")
    with pytest.raises(ScenarioError, match="timed failed"):
        interleaved(base, head)(SCENARIO, PLAN)
    assert log == ["timed base", "timed head", "close base"]


def test_what_cannot_be_closed_after_a_failure_does_not_hide_it() -> None:
    log: list[str] = []
    side = Side("base", log, 1.0, fails="close")
    with pytest.raises(KeyboardInterrupt), left(side):
        raise KeyboardInterrupt
    assert log == ["close base"]


@pytest.fixture
def sleepers() -> Iterator[tuple[int, int]]:
    """Two processes that do nothing."""
    program = [sys.executable, "-c", "import time; time.sleep(600)"]
    both = [subprocess.Popen(program) for _ in range(2)]
    yield both[0].pid, both[1].pid
    for one in both:
        one.kill()
        one.wait()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes cannot be pinned here")
def test_base_runs_on_the_core_of_head_while_head_is_timed(sleepers: tuple[int, int]) -> None:
    processes = [psutil.Process(pid) for pid in sleepers]
    before = [one.cpu_affinity() for one in processes]
    seen: list[list[list[int]]] = []

    class Watching(Side):
        def round(self) -> Round:
            seen.append([one.cpu_affinity() for one in processes])
            return super().round()

    log: list[str] = []
    base, head = (
        Side("base", log, 1.0, pid=sleepers[0]),
        Watching("head", log, 1.1, pid=sleepers[1]),
    )
    timing = cross_env_sampler(base, head, place_both, shares_core=True)(SCENARIO, PLAN)
    assert timing.sample.log_ratio == pytest.approx(math.log(1.1))
    assert all(len(cores[0]) == 1 and cores[0] == cores[1] for cores in seen)
    assert [one.cpu_affinity() for one in processes] == before
    assert log.count("start_calls base") == log.count("stop_calls base") == PLAN.groups
    assert "round base" not in log
    assert log[-2:] == ["close head", "close base"]


@pytest.mark.parametrize("fails", ["place", "start_calls", "stop_calls"])
def test_both_are_closed_whatever_fails_on_one_core(fails: str, sleepers: tuple[int, int]) -> None:
    log: list[str] = []
    base = Side("base", log, 1.0, fails=fails, pid=sleepers[0])
    head = Side("head", log, 1.0, pid=sleepers[1])
    with pytest.raises(ScenarioError, match=f"{fails} failed"):
        cross_env_sampler(base, head, place_both, shares_core=True)(SCENARIO, PLAN)
    assert log.count("close base") == log.count("close head") == 1
