"""How quiet the host was, from clocks that follow a script."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from fixtures.measuring import timed
from fixtures.measuring.timed import EvidenceWatch
from fixtures.records.timing import Evidence


def _clocks(
    monkeypatch: pytest.MonkeyPatch, system: Sequence[Any], own_s: Sequence[float]
) -> EvidenceWatch:
    """A watch over ten seconds, with the times of the machine and of this process given."""
    processes = iter([SimpleNamespace(user=seconds, system=0.0) for seconds in own_s])
    times, walls = iter(system), iter((0.0, 10.0))
    monkeypatch.setattr(psutil, "cpu_times", lambda: next(times))
    monkeypatch.setattr(
        psutil, "Process", lambda: SimpleNamespace(cpu_times=lambda: next(processes))
    )
    monkeypatch.setattr(psutil, "getloadavg", lambda: (1.5, 9.0, 9.0))
    monkeypatch.setattr(timed, "time", SimpleNamespace(monotonic=lambda: next(walls)))
    return EvidenceWatch()


class Times(tuple[float, float]):
    """Times of a machine: what was used, and what other guests took."""

    __slots__ = ()

    @property
    def steal(self) -> float:
        return self[1]


@pytest.mark.parametrize(
    ("system", "own_s", "steal", "cpu_share"),
    [
        ([Times((100.0, 50.0)), Times((115.0, 55.0))], [30.0, 39.0], 0.25, 0.9),
        ([(100.0, 0.0), (100.0, 0.0)], [0.0, 0.0], 0.0, 0.0),
        ([Times((0.0, 0.0)), Times((20.0, 0.0))], [0.0, 20.0], 0.0, 1.0),
    ],
    ids=["one thread", "neither steal nor progress", "several threads"],
)
def test_steal_and_share_are_those_of_the_watched_time(
    system: Sequence[Any],
    own_s: Sequence[float],
    steal: float,
    cpu_share: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch = _clocks(monkeypatch, system, own_s)
    assert watch.read() == Evidence(load=1.5, steal=steal, cpu_share=cpu_share)


def test_a_real_watch_sees_this_process_at_work() -> None:
    watch = EvidenceWatch()
    until_s = time.process_time() + 0.05  # the system counts in hundredths of a second
    while time.process_time() < until_s:
        pass
    evidence = watch.read("980 MHz")
    assert evidence.load >= 0
    assert 0 <= evidence.steal <= 1
    assert 0 < evidence.cpu_share <= 1
    assert evidence.device == "980 MHz"
