"""`torch.cuda` of the rehearsal: the simulated accelerator, for as long as the process lives.

The simulation is entered once, when the CUDA device's module is imported, and never left: a card
is always there.
"""

from __future__ import annotations

import atexit
import contextlib
from collections.abc import Mapping
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import torch

from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.devices.simulated.simulation import Simulation
from tests.rehearsal import clock, kineto, machine


def insert(cuda_device: ModuleType) -> None:
    """Put the card under the CUDA device, and its clock."""
    device, entering = SimulatedDevice(machine.PROFILE, draws=True), contextlib.ExitStack()
    entering.enter_context(device.entered())
    simulation = device._simulation
    assert simulation is not None
    for name, answer in _answers(simulation).items():
        entering.enter_context(_attribute(torch.cuda, name, answer))
    clear = _Clear(simulation)
    entering.enter_context(_attribute(torch._C, "_cuda_clearCublasWorkspaces", clear))
    atexit.register(entering.close)
    clock.start(simulation)
    clock.put_into(cuda_device)
    kineto.watch(simulation)
    kineto.record()


def _attribute(owner: Any, name: str, value: Any) -> Any:
    return mock.patch.object(owner, name, value, create=True)


class _Clear:
    """Frees the workspace of cuBLAS."""

    def __init__(self, simulation: Simulation) -> None:
        self._memory = simulation.memory

    def __call__(self) -> None:
        self._memory._free(self._memory._workspace)
        self._memory._workspace = None


def _answers(simulation: Simulation) -> Mapping[str, Any]:
    """What `CudaDevice` asks `torch.cuda`, and the simulated device itself need not know."""
    allocator, profile = simulation.memory.allocator, simulation.profile
    used: list[str] = []

    def properties(index: int) -> Any:
        uuid = machine.visible()[index]
        if not used:
            clock.seed(machine.use(uuid))
            used.append(uuid)
        return SimpleNamespace(
            name=profile.name,
            total_memory=profile.memory_bytes,
            major=profile.compute_capability[0],
            minor=profile.compute_capability[1],
            multi_processor_count=132,
            uuid=uuid,
        )

    return {
        "is_available": lambda: bool(machine.visible()),
        "get_device_properties": properties,
        "memory_stats": lambda index: {"requested_bytes.all.current": allocator.requested_bytes},
    }
