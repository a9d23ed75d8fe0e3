"""What the simulated card says of a published run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch

from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.devices.simulated.profiles import find_card
from fixtures.measuring.state import state_put_back
from fixtures.measuring.trial import Trial, try_configuration
from fixtures.records.fit import Configuration, Fit
from fixtures.records.units import GIB
from fixtures.techniques import CATALOGUE
from fixtures.workloads import Workload
from tests.support.published.records import Call, Counter, Figure, Script
from tests.support.published.workloads import workloads

CONTEXT_BYTES = int(0.45 * GIB)
"""What a CUDA context takes: 0.3 to 0.6 GiB (docs/simulated.md)."""
_STEPS = 2
"""Denoising steps of what is placed by hand: every further one has the same peak."""
LOADED: tuple[Counter, ...] = ("loaded", "loaded, reserved")


@dataclass(frozen=True)
class Taken:
    """Memory of a process in bytes, by counter, from an empty card on.

    `exact` is the allocated peak without cuDNN's workspaces.
    """

    exact: int
    by_counter: dict[Counter, int]


@cache
def device_of(card: str) -> SimulatedDevice:
    """The simulated card."""
    return SimulatedDevice(find_card(card))


@cache
def _trial_device(card: str) -> SimulatedDevice:
    return SimulatedDevice(find_card(card), trial=True)


_FIRST: dict[object, str] = {}
"""The card that stands for all on which the same kernels run."""


@cache
def _kept(name: str, device: SimulatedDevice) -> Workload:
    """A workload of one device, which keeps what it has loaded there."""
    del device
    return replace(workloads()[name])


def changed(call: Call, device: SimulatedDevice) -> Workload:
    """The workload with the call's size, until it is asked for again."""
    workload = _kept(call.workload, device)
    changes: dict[str, Any] = dict(call.changes)
    workload.call = replace(workloads()[call.workload].call, **changes)
    return workload


@cache
def way_of(call: Call, card: str) -> Configuration:
    """A call with techniques, as `nox -s fit` tries it."""
    profile = find_card(card)
    return _trial_of(call, _FIRST.setdefault(profile.kernels, card)).on(profile)


@cache
def _trial_of(call: Call, card: str) -> Trial:
    assert not callable(call.how)
    device = _trial_device(card)
    return try_configuration(changed(call, device), [CATALOGUE[one] for one in call.how], device)


def taken(figure: Figure) -> Taken:
    """What the figure's run takes."""
    run = figure.run
    if not isinstance(run, Call):
        return _taken_by(run, figure.card, called=figure.counter not in LOADED)
    if callable(run.how):
        return _taken_by(
            _script(run, figure.card), figure.card, called=figure.counter not in LOADED
        )
    way = way_of(run, figure.card)
    reserved = way.reserved_bytes
    return Taken(
        way.peak_bytes,
        {
            "allocated": way.modelled_bytes,
            "reserved": reserved,
            "shown": reserved + CONTEXT_BYTES,
        },
    )


@cache
def _script(call: Call, card: str) -> Script:
    """Its pipeline, placed by hand."""

    def script(device: torch.device) -> Callable[[], object]:
        workload = changed(call, device_of(card))
        assert callable(call.how)
        pipeline = workload.load(getattr(torch, call.dtype or workload.half))
        call.how(pipeline, device)
        return lambda: workload.draw(pipeline, steps=_STEPS)

    return script


@cache
def _taken_by(script: Script, card: str, *, called: bool) -> Taken:
    device = device_of(card)
    with state_put_back(), device.entered(), torch.no_grad():
        call = script(device.torch_device)
        simulation = device._simulation
        assert simulation is not None
        exact, modelled = simulation.memory.allocator, simulation.memory.modelled
        loaded: dict[Counter, int] = {
            "loaded": exact.allocated_bytes,
            "loaded, reserved": exact.reserved_bytes,
        }
        before_bytes = modelled.peak_reserved_bytes
        result = call() if called else None
        reserved = modelled.peak_reserved_bytes
        del result
        found = Taken(
            exact.peak_allocated_bytes,
            {
                **loaded,
                "allocated": modelled.peak_allocated_bytes,
                "reserved": reserved,
                "rise": reserved - before_bytes,
                "shown": reserved + CONTEXT_BYTES,
                "held": exact.allocated_bytes,
            },
        )
        del call
        device.release()
        return found


def verdict_of(way: Configuration, memory_bytes: int) -> bool:
    """As `nox -s fit` decides, on a card with so much memory."""
    return Fit("", {}, "", memory_bytes, {}).fits(way) != "no"
