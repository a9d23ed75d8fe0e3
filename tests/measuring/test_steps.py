"""Late steps are held to the first ones: by the clock on the CPU, by counts in the simulation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.devices import Trace
from fixtures.measuring.steps import CONFIRMATIONS, grown, late_steps, late_work, marks_of
from fixtures.records.host_work import Calls, HostCalls
from fixtures.records.run import WHOLE
from tests.support.runs import counts, host_work


def marks(*durations_s: float) -> list[float]:
    return list(accumulate(durations_s, initial=5.0))


def never() -> Sequence[float]:
    raise AssertionError("nothing is late: no call is made again")


@given(st.lists(st.floats(0.030, 0.036), min_size=2, max_size=20))
def test_steps_that_take_about_as_long_are_not_late(durations_s: list[float]) -> None:
    assert late_steps(marks(*durations_s), 3, never) == ""


@pytest.mark.parametrize("slow", range(2, 6))
def test_a_step_is_late_if_it_is_in_every_call(slow: int) -> None:
    durations_s = [0.03] * 6
    durations_s[slow] = 0.04
    late, on_time = marks(*durations_s), marks(*[0.03] * 6)
    sentence = late_steps(late, 3, lambda: late)
    assert sentence.startswith(f"step {slow + 2} of 7 takes 40 ms, where the first ones take at ")
    for number in range(CONFIRMATIONS):
        calls = iter([late] * number + [on_time] + [late] * CONFIRMATIONS)
        assert late_steps(late, 3, lambda calls=calls: next(calls)) == ""  # type: ignore[misc]
    other = [0.03] * 6
    other[2 if slow != 2 else 3] = 0.04
    assert late_steps(late, 3, lambda: marks(*other)) == ""


def test_all_that_are_late_are_counted_and_the_worst_is_named() -> None:
    late = marks(0.03, 0.03, *[0.13] * 3, 0.14)
    sentence = late_steps(late, 3, lambda: late)
    assert sentence.startswith("4 steps, most of all step 7, of 7 take 140 ms")


def test_a_few_milliseconds_are_nobody_s_fault_and_early_steps_are_not_late() -> None:
    assert late_steps(marks(0.001, 0.001, 0.0025), 3, never) == ""
    assert late_steps(marks(0.09, 0.03, 0.03, 0.03), 3, never) == ""
    assert late_steps([], 3, never) == ""


def test_marks_are_taken_at_every_step_and_the_scheduler_keeps_its_own() -> None:
    class Scheduler:
        def step(self, value: int) -> int:
            return value + 1

    scheduler, now = Scheduler(), iter([1.0, 2.0, 3.0])
    drawn: list[int] = []
    found = marks_of(
        lambda: drawn.extend(scheduler.step(n) for n in range(3)), scheduler, lambda: next(now)
    )
    assert (found, drawn) == ([1.0, 2.0, 3.0], [1, 2, 3])
    assert "step" not in vars(scheduler)


def simulated(per_step: Sequence[int], peak: int = 100, calls: int = 1) -> Trace:
    """A call whose steps have so many products each, in as many calls of the denoiser."""
    before = list(accumulate((n / calls for n in per_step for _ in range(calls)), initial=2.0))
    readings = [(counts(mm=int(n * 10)), 0.0) for n in before[:-1]]
    return Trace(component_peak_bytes={WHOLE: peak}, readings=readings)


def work(*calls_a_step: int) -> list[HostCalls]:
    return [HostCalls({"diffusers": Calls(functions=n)}) for n in calls_a_step]


EVEN = work(*[600] * 7)


@pytest.mark.parametrize("calls", [1, 2])
def test_simulated_steps_that_do_the_same_are_no_fault(calls: int) -> None:
    few, whole = simulated([4, 4, 4], calls=calls), simulated([4] * 7 + [2], calls=calls)
    assert late_work(whole, few, EVEN, 3) == ""
    less = simulated([4, 4, 4, 2, 4, 2, 4, 4], calls=calls)
    assert late_work(less, few, EVEN, 3) == ""


@pytest.mark.parametrize("step", range(3, 8))
def test_more_operations_in_a_late_step_are_named(step: int) -> None:
    per_step = [4] * 8
    per_step[step - 1] = 6
    sentence = late_work(simulated(per_step), simulated([4, 4, 4]), EVEN, 3)
    assert sentence.startswith(f"step {step} of 8 does more than step 2: ")
    assert "aten::mm +20" in sentence


def test_more_of_the_host_s_work_in_a_late_step_is_named() -> None:
    few, whole = simulated([4, 4, 4]), simulated([4] * 8)
    late = work(600, 600, 600, 600, 620, 600, 600)
    sentence = late_work(whole, few, late, 3)
    assert sentence == "step 6 of 8 does more than step 2: host calls +20 a step"
    assert late_work(whole, few, work(*[600] * 4, 612, 600, 600), 3) == ""


def test_a_higher_peak_of_late_steps_is_a_fault() -> None:
    sentence = late_work(simulated([4] * 8, peak=3 * 2**20), simulated([4] * 3, 2**20), EVEN, 3)
    assert sentence == "the peak of a call of 8 steps is 3.00 MiB, and that of 3 is 1.00 MiB"


def test_a_call_that_grows_is_a_fault() -> None:
    before = host_work(torch_a_step=0)
    assert grown(before, host_work(torch_a_step=5000)) == ""  # where torch was not counted before
    assert grown(before, host_work(590)) == grown(before, host_work(612)) == ""
    sentence = grown(before, host_work(613, bytecodes_a_step=81_000))
    more = "host calls +13 a step, bytecodes +1,000 a step"
    assert sentence == f"a step of the next call of the same pipeline does more: {more}"


def test_without_a_scheduler_nothing_is_said() -> None:
    assert late_work(SimpleNamespace(readings=(), component_peak_bytes={}), Trace(), [], 3) == ""  # type: ignore[arg-type]
