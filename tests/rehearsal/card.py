"""`torch.cuda` of the rehearsal: the simulated accelerator, for as long as the process lives.

The simulation is entered once, when the CUDA device's module is imported, and never left: a card
is always there.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
from collections.abc import Mapping
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import torch

from fixtures.devices.simulated import shadows
from fixtures.devices.simulated.private import check_torch, entered, new_fake_mode, without_swaps
from fixtures.devices.simulated.profiles import find_profile
from fixtures.devices.simulated.redirects import Redirects
from fixtures.devices.simulated.runtime import runtime
from fixtures.devices.simulated.simulation import Simulation
from fixtures.devices.simulated.weights import fake_weights
from tests.rehearsal import clock, kineto, machine


def insert(cuda_device: ModuleType) -> None:
    """Put the card under the CUDA device, and its clock."""
    check_torch()
    profile = find_profile(machine.PROFILE)
    simulation, mode = Simulation(profile, draws=True), new_fake_mode()
    # The allocator is not re-entrant, and a collection could start within a call of it.
    gc.disable()
    entering = contextlib.ExitStack()
    for context in (
        runtime(simulation),
        *(_attribute(torch.cuda, name, it) for name, it in _answers(simulation).items()),
        _attribute(torch._C, "_cuda_clearCublasWorkspaces", _Clear(simulation)),
        _attribute(torch, "inference_mode", _without_gradients),
        without_swaps(),
        entered(mode),
        fake_weights(mode, values=True),
        simulation,
        simulation.modules,
        Redirects(simulation, partial(shadows.faked, mode)),
    ):
        entering.enter_context(context)
    atexit.register(entering.close)
    clock.start(simulation)
    clock.put_into(cuda_device)
    kineto.watch(simulation)


def _attribute(owner: Any, name: str, value: Any) -> Any:
    return mock.patch.object(owner, name, value, create=True)


def _without_gradients(mode: Any = True) -> Any:
    """Stands in for inference mode, which fake tensors do not know."""
    if callable(mode):
        return torch.no_grad()(mode)
    return torch.no_grad() if mode else contextlib.nullcontext()


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
            multi_processor_count=profile.multiprocessors,
            uuid=uuid,
        )

    return {
        "device_count": lambda: len(machine.visible()),
        "is_available": lambda: bool(machine.visible()),
        "get_device_properties": properties,
        "memory_stats": lambda index: {"requested_bytes.all.current": allocator.requested_bytes},
    }
