"""One call on a small workload, which is small already."""

from __future__ import annotations

from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.studies.no_ops.making import Call, by_lines
from fixtures.studies.no_ops.trial import Found, Trials
from tests.support.small_workloads import small_workload


def tried(call: Call, name: str = "flux") -> Found:
    """What a call is found to do."""
    return Trials(small_workload(name), SimulatedDevice("h200")).tried("this", call)


def found_by(lines: str, name: str = "flux") -> Found:
    """What these lines are found to do."""
    return tried(Call(by_lines(lines)), name)
