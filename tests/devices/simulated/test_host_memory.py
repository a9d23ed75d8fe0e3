"""Host memory of offloaded weights: pageable and pinned bytes, and what takes none."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import torch

from fixtures.catalogue.workloads import Workload
from fixtures.devices import Trace
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.devices.simulated.host_memory import HostMemory
from fixtures.devices.simulated.simulation import Simulation
from fixtures.records.run import PAGEABLE, PINNED
from tests.support.simulated_runs import SIDE_PX, simulate, small

KIB = 2**10
IMAGE_BYTES = 3 * SIDE_PX**2 * (2 + 4)
"""It comes back in half precision and is cast to fp32."""


@pytest.fixture(scope="module")
def workload() -> Workload:
    """One workload for all, which keeps the weights that it copies from."""
    return small()


def weights_of(workload: Workload) -> list[int]:
    """The bytes of every weight."""
    device = SimulatedDevice()
    with device.entered():
        pipeline = workload.load_base(device)
        modules = [
            part for part in pipeline.components.values() if isinstance(part, torch.nn.Module)
        ]
        sizes_bytes = {
            tensor.untyped_storage()._cdata: tensor.nbytes
            for module in modules
            for tensor in (*module.parameters(), *module.buffers())
        }
        del pipeline, modules
        device.release()
    return list(sizes_bytes.values())


def host_bytes(technique: str, workload: Workload) -> tuple[int, int]:
    trace: Trace = simulate(technique, workload=workload)
    return trace.host_bytes[PAGEABLE], trace.host_bytes[PINNED]


def test_offloaded_weights_lie_in_pageable_memory_once(workload: Workload) -> None:
    weights_bytes = sum(weights_of(workload))
    for technique in ("model_cpu_offload", "sequential_cpu_offload"):
        pageable_bytes, pinned_bytes = host_bytes(technique, workload)
        assert weights_bytes <= pageable_bytes <= weights_bytes + IMAGE_BYTES
        assert pinned_bytes == 0
    fresh, kept = (host_bytes("sequential_cpu_offload", each) for each in (small(), workload))
    assert fresh == kept, "it makes no difference whether the workload has its weights already"


def test_what_is_on_the_device_or_in_files_takes_no_host_memory(workload: Workload) -> None:
    assert host_bytes("fp16", workload) == (IMAGE_BYTES, 0)
    assert host_bytes("group_offload_disk", workload) == (max(weights_of(workload)), 0)


def test_a_stream_pins_a_power_of_two_for_each_weight(workload: Workload) -> None:
    pageable_bytes, pinned_bytes = host_bytes("group_offload_stream", workload)
    weights = weights_of(workload)
    assert pinned_bytes == sum(1 << (size - 1).bit_length() for size in weights)
    assert pinned_bytes > 1.05 * sum(weights)
    assert pageable_bytes == IMAGE_BYTES


# One tensor at a time


@pytest.fixture
def memory(simulation: Simulation) -> HostMemory:
    return simulation.host


def weight(elements: int = 3 * KIB) -> Any:
    """A deep copy of a weight in fp32, as a scenario gets it."""
    return deepcopy(torch.nn.Parameter(torch.ones(elements), requires_grad=False))


def test_pinning_copies_once_and_frees_the_block_for_the_next(memory: HostMemory) -> None:
    plain = weight()
    assert (memory.pageable_bytes, memory.pinned_bytes) == (12 * KIB, 0)
    pinned = plain.data.pin_memory()
    assert pinned.is_pinned()
    assert not plain.is_pinned()
    assert pinned.pin_memory() is pinned
    assert (memory.pageable_bytes, memory.pinned_bytes) == (12 * KIB, 16 * KIB)
    assert memory.peak_pageable_bytes == 12 * KIB
    del pinned
    again = weight(4 * KIB).data.pin_memory()
    assert (again.is_pinned(), memory.pinned_bytes) == (True, 16 * KIB)
    del again
    smaller = weight(2 * KIB).data.pin_memory()
    assert smaller.is_pinned()
    assert memory.pinned_bytes == (16 + 8) * KIB, "a free block serves its own power of two alone"


def test_memory_takes_room_from_when_it_is_written_until_its_last_view_is_gone(
    memory: HostMemory,
) -> None:
    written = weight()
    empty = torch.empty_like(written)
    assert memory.pageable_bytes == 12 * KIB
    empty.copy_(written)
    assert memory.pageable_bytes == 24 * KIB
    del empty
    view = written[: written.numel() // 2]
    del written
    assert memory.pageable_bytes == 12 * KIB
    moved = view.to("cuda")
    del view
    assert memory.pageable_bytes == 0
    assert memory.peak_pageable_bytes == 24 * KIB
    back = moved.to("cpu")
    memory.begin()
    assert memory.pageable_bytes == memory.peak_pageable_bytes == back.nbytes == 6 * KIB
