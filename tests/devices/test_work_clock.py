"""The clock of work counts computing and sleeping, and neither queueing nor stolen time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from fixtures.devices.cpu import Reading, WorkClock, read_thread


def clock_of(*readings: Reading) -> Callable[[], float]:
    left: Iterator[Reading] = iter(readings)
    return WorkClock(lambda: next(left)).now_s


START = Reading(wall_s=100.0, cpu_s=10.0, queued_s=1.0, sleeps=5)


@pytest.mark.parametrize(
    ("later", "work_s"),
    [
        (Reading(101.0, 11.0, 1.0, 5), 1.0),
        (Reading(103.0, 11.0, 3.0, 5), 1.0),
        (Reading(104.0, 11.0, 3.0, 6), 2.0),
        (Reading(104.0, 11.0, 1.0, 5), 1.0),
    ],
    ids=["computing", "waiting for a core", "sleeping and queueing", "a core taken by the host"],
)
def test_computing_and_sleeping_count_and_queueing_does_not(later: Reading, work_s: float) -> None:
    now_s = clock_of(START, later)
    assert now_s() + work_s == pytest.approx(now_s())


def test_it_never_runs_backwards_when_figures_round() -> None:
    now_s = clock_of(START, Reading(101.0, 11.0, 1.1, 6), Reading(101.0, 11.0, 1.1, 7))
    first, second, third = now_s(), now_s(), now_s()
    assert first <= second <= third


@pytest.mark.skipif(read_thread() is None, reason="this kernel does not tell queueing from sleep")
def test_a_real_sleep_is_seen_where_cpu_time_is_blind() -> None:
    clock = WorkClock()
    start_s, cpu_s = clock.now_s(), time.thread_time()
    time.sleep(0.05)
    assert time.thread_time() - cpu_s < 0.04
    assert clock.now_s() - start_s >= 0.045
