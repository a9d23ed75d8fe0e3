"""Paired rounds between two fake sides: what cancels, what is shown, and what is disturbed."""

from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Callable, Collection, Iterator
from typing import Any

import psutil
import pytest

from fixtures.catalogue.workloads.storybook import PIPELINE_FOLDER
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.records.timing import Timing
from fixtures.worker.frozen import fingerprint
from fixtures.worker.recording import CONTROL_VERSION, reference_label, timing_of
from fixtures.worker.rounds import (
    DISTURBED_CAP,
    ROUNDS_S,
    SHORT,
    Plan,
    Round,
    one_core,
    paired_rounds,
    plan_of,
)
from tests.support.fake_device import FakeDevice
from tests.support.fake_scenarios import STEPS, fake_scenario
from tests.support.fake_timed import FakeTimed
from tests.support.scenarios import find_scenario

RATIO = 1.5
SCENARIO = fake_scenario(lambda: None)


def alternating(reference: FakeTimed, candidate: FakeTimed, groups: int, pairs: int) -> Timing:
    return paired_rounds(SCENARIO, reference, candidate, Plan(groups, pairs), shares_core=False)


# Rounds that alternate


def test_drift_cancels_since_each_round_stands_between_two_of_the_reference() -> None:
    calls = 0

    def slower_each_time(number: int) -> float:
        nonlocal calls
        calls += 1
        return 1.05**calls

    reference = FakeTimed(slower_each_time)
    candidate = FakeTimed(lambda number: RATIO * slower_each_time(number))
    timing = alternating(reference, candidate, 2, 3)
    for group in timing.groups:
        assert group.log_ratios() == pytest.approx([math.log(RATIO)] * 3)


def test_both_are_placed_anew_for_each_group() -> None:
    reference, candidate = FakeTimed(), FakeTimed()
    alternating(reference, candidate, 4, 1)
    assert (reference.placed, candidate.placed) == (4, 4)


# On one core


class Core:
    """A core that two sides share evenly, and whose speed changes with time."""

    def __init__(self, speed: Callable[[float], float] = lambda now_s: 1.0) -> None:
        self.now_s = 100.0
        self.speed = speed

    def run(self, work_s: float) -> Round:
        """Half of the core until the work is done, in slices of a millisecond."""
        start_s, judged_s = self.now_s, 0.0
        while work_s > 0:
            slice_s = min(0.001, work_s / self.speed(self.now_s))
            work_s -= slice_s * self.speed(self.now_s)
            judged_s += slice_s
            self.now_s += 2 * slice_s
        return Round(judged_s, self.now_s - start_s, None, self.now_s)


class OnCore(FakeTimed):
    """Its rounds take place on a core that it shares; as a reference, as seen when it stops."""

    def __init__(self, core: Core, work_s: float) -> None:
        super().__init__()
        self._core = core
        self._work_s = work_s
        self._started_s = math.nan

    def round(self) -> Round:
        return self._core.run(self._work_s)

    def start_calls(self) -> None:
        # It is in the middle of a call when the candidate begins.
        self._started_s = self._core.now_s - 0.1

    def stop_calls(self) -> list[Round]:
        until_s, self._core.now_s = self._core.now_s, self._started_s
        calls = []
        while self._core.now_s < until_s:
            calls.append(self._core.run(self._work_s))
        return calls


def on_core(core: Core, groups: int = 2) -> Timing:
    reference, candidate = OnCore(core, 0.3), OnCore(core, RATIO)
    timing = paired_rounds(SCENARIO, reference, candidate, Plan(groups, 2), shares_core=True)
    assert reference.placed == candidate.placed == groups
    assert (reference.closed, candidate.closed) == (0, 0)
    return timing


def test_each_round_is_compared_with_the_calls_that_ran_beside_it() -> None:
    timing = on_core(Core())
    for group in timing.groups:
        assert group.reference_s == pytest.approx((0.3, 0.3))
        assert group.candidate_s == pytest.approx((RATIO, RATIO))
    assert timing.wall_s == pytest.approx((RATIO,) * 4), "the candidate's own"
    assert timing.evidence == "load 0.5; seen by it"


@pytest.mark.parametrize("period_s", [0.05, 0.7, 5.0])
def test_what_slows_the_core_down_slows_both(period_s: float) -> None:
    """Twice as slow for half of the time: alternating rounds would differ by a factor of two."""
    core = Core(lambda now_s: 1.0 if now_s % period_s < period_s / 2 else 0.5)
    timing = on_core(core, groups=8)
    assert timing.sample.log_ratio == pytest.approx(math.log(RATIO / 0.3), abs=0.05)


def test_rounds_beside_which_the_reference_got_no_time_do_not_count() -> None:
    class Idle(OnCore):
        def stop_calls(self) -> list[Round]:
            calls = super().stop_calls()
            return calls if self.placed > idle else []

    core = Core()
    idle = 1
    reference, candidate = Idle(core, 0.3), OnCore(core, RATIO)
    timing = paired_rounds(SCENARIO, reference, candidate, Plan(8, 2), shares_core=True)
    assert len(timing.groups) == 7
    assert timing.sample.log_ratio == pytest.approx(math.log(RATIO / 0.3))
    idle = 8
    with pytest.raises(ScenarioError, match="the reference got no time beside it") as failed:
        paired_rounds(SCENARIO, Idle(core, 0.3), candidate, Plan(8, 2), shares_core=True)
    assert failed.value.outcome is Outcome.INCONCLUSIVE


@pytest.fixture
def sleepers() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two processes that do nothing."""
    both = [subprocess.Popen(["sleep", "600"]) for _ in range(2)]
    yield both
    for sleeper in both:
        sleeper.kill()
        sleeper.wait()


needs_affinity = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="processes cannot be pinned here"
)


@needs_affinity
def test_in_each_round_both_are_on_one_core_and_afterwards_wherever_they_might_be(
    sleepers: list[subprocess.Popen[bytes]],
) -> None:
    processes = [psutil.Process(sleeper.pid) for sleeper in sleepers]
    before = [process.cpu_affinity() for process in processes]
    seen: list[list[list[int]]] = []

    def pinned(number: int) -> float:
        seen.append([process.cpu_affinity() for process in processes])
        return 1.0

    reference, candidate = (FakeTimed(pinned, pid=sleeper.pid) for sleeper in sleepers)
    paired_rounds(SCENARIO, reference, candidate, Plan(2, 1), shares_core=True)
    assert all(len(mine) == 1 and mine == theirs for mine, theirs in seen)
    assert len(seen) == 4  # the candidate's rounds, and the reference's calls beside them
    assert [process.cpu_affinity() for process in processes] == before
    gone, left = sleepers
    with pytest.raises(KeyboardInterrupt), one_core(gone.pid, left.pid):
        raise KeyboardInterrupt
    assert [process.cpu_affinity() for process in processes] == before
    with one_core(gone.pid, left.pid):
        gone.kill()
        gone.wait()
    assert processes[1].cpu_affinity() == before[1]
    with one_core(gone.pid, left.pid):
        assert processes[1].cpu_affinity() == before[1]


# Disturbed rounds


def test_the_timing_holds_both_clocks_and_no_group_with_a_disturbed_round() -> None:
    reference = FakeTimed()
    candidate = FakeTimed(lambda number: RATIO * (9 if number == 3 else 1), share=0.1, hot=[3])
    timing = alternating(reference, candidate, 3, 2)
    assert [group.reference_s for group in timing.groups] == [(1.0,) * 3] * 2
    assert [group.candidate_s for group in timing.groups] == [(RATIO,) * 2] * 2
    assert timing.sample.log_ratio == pytest.approx(math.log(RATIO))
    assert timing.wall_s == pytest.approx([10 * RATIO] * 4)
    assert timing.evidence == candidate.evidence()
    assert (reference.closed, candidate.closed) == (0, 0)


@pytest.mark.parametrize("hot", [1, 4, 12])
def test_a_disturbed_reference_round_spoils_its_group(hot: int) -> None:
    timing = alternating(FakeTimed(hot=[hot]), FakeTimed(), 3, 3)
    assert len(timing.groups) == 2


def test_as_many_disturbed_groups_as_the_cap_are_left_out_and_one_more_is_no_latency() -> None:
    def timed(hot: Collection[int]) -> Timing:
        return alternating(FakeTimed(), FakeTimed(hot=hot), 4, 2)

    assert len(timed([1, 2, 3]).groups) == 4 * (1 - DISTURBED_CAP)
    with pytest.raises(ScenarioError) as caught:
        timed([1, 3, 5])
    assert caught.value.scenario == SCENARIO.id
    assert caught.value.outcome is Outcome.INCONCLUSIVE
    assert caught.value.reason.startswith("3 of 4 groups of rounds were disturbed (it was hot); ")


# Plans


def test_a_slow_call_gets_fewer_groups_but_at_least_two() -> None:
    assert [plan_of(SCENARIO, call_s) for call_s in (0.0, 0.1)] == [Plan()] * 2
    assert plan_of(SCENARIO, 12.0) == plan_of(SCENARIO, 12.0, SHORT) == Plan(groups=2)
    middling = plan_of(SCENARIO, 1.0)
    assert 2 < middling.groups < Plan.groups
    assert middling.groups * (2 * middling.pairs + 1) * 1.0 <= ROUNDS_S
    assert plan_of(SCENARIO, 0.1, SHORT) == Plan(SHORT)


def test_a_plan_is_for_the_timed_call_which_takes_few_steps_unless_some_are_skipped() -> None:
    scenario = find_scenario("storybook", "sdpa")
    workload = scenario.workload
    assert workload.steps_of_timed_call < workload.call.steps
    share = workload.steps_of_timed_call / workload.call.steps
    assert plan_of(scenario, 2.0) == plan_of(SCENARIO, 2.0 * share) != plan_of(SCENARIO, 2.0)
    skipping = find_scenario("storybook", "deep_cache")
    assert plan_of(skipping, 2.0) == plan_of(SCENARIO, 2.0)
    assert timing_of(skipping, FakeDevice())["steps"] == workload.call.steps == 20


FP32 = fake_scenario(lambda: None, name="fp32")
CONTROL = {"steps": STEPS, "control": CONTROL_VERSION}
FROZEN = {"steps": 3, "frozen reference": fingerprint(PIPELINE_FOLDER)}


@pytest.mark.parametrize(
    ("timed", "device", "stated", "label"),
    [
        (SCENARIO, {}, {"steps": STEPS}, "fp32"),
        (FP32, {}, CONTROL, "the control workload"),
        (SCENARIO, {"shares_core": True}, {"steps": STEPS, "rounds": "on one core"}, "fp32"),
        (SCENARIO, {"keeps_memory": True}, {"steps": STEPS, "freed memory": "kept"}, "fp32"),
        (("fp32", ""), {}, FROZEN, "the frozen reference"),
        (("sdpa", "embedded"), {}, FROZEN, "the frozen reference"),
        (("fp32", "my/pipeline"), {}, {**CONTROL, "steps": 3}, "the control workload"),
        (("sdpa", "random"), {}, {"steps": 3}, "fp32"),
    ],
)
def test_a_ratio_is_of_so_many_steps_to_what_they_are_timed_against(
    timed: Any, device: dict[str, Any], stated: dict[str, Any], label: str
) -> None:
    """To the frozen reference with its own weights, to fp32, or to the control workload."""
    scenario = find_scenario("storybook", *timed) if isinstance(timed, tuple) else timed
    assert timing_of(scenario, FakeDevice(**device)) == stated
    assert reference_label(scenario) == label
