"""One call on a small workload, whose run without the call is made once for all tests."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.studies.no_ops.making import Call, by_lines
from fixtures.studies.no_ops.trial import Found, Trials
from fixtures.workloads import Workload
from tests.support.small_workloads import small_workload

STEPS = 2


def tiny(name: str) -> Workload:
    """The small workload with fewer steps."""
    workload = small_workload(name)
    return replace(workload, call=replace(workload.call, steps=STEPS))


@cache
def trials(name: str) -> Trials:
    """Calls on one workload."""
    return Trials(tiny(name), SimulatedDevice("h200"))


def tried(call: Call, name: str = "flux") -> Found:
    """What a call is found to do."""
    return trials(name).tried("this", call)


def found_by(lines: str, name: str = "flux") -> Found:
    """What these lines are found to do."""
    return tried(Call(by_lines(lines)), name)
