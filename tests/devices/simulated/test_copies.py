"""Copies between host and device, and the waits for them, as torch's source says (`copies.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.devices.simulated.simulation import DEVICE, Simulation
from fixtures.records.counts import (
    BYTES_TO_DEVICE,
    BYTES_TO_HOST,
    COPIES_TO_DEVICE,
    COPIES_TO_HOST,
    SYNCS,
    Counts,
)

KIB = 1024
TO, BACK = "to the device", "to the host"


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    device = SimulatedDevice()
    with device.entered():
        assert device._simulation is not None
        yield device._simulation


def sides() -> SimpleNamespace:
    """fp32 tensors of 1 KiB on either side, and smaller ones."""
    there = torch.arange(256.0, device=DEVICE).reshape(16, 16).clone()
    return SimpleNamespace(
        host=torch.ones(16, 16),
        there=there,
        mask=there > 3,
        one=torch.tensor(2.0),
        one_there=torch.zeros((), device=DEVICE),
        rows=torch.tensor([0, 1]),
        eight=torch.zeros(8, 16, device=DEVICE),
        host_mask=torch.tensor([True, False] * 8),
    )


def half(tensor: torch.Tensor, device: Any, **how: Any) -> torch.Tensor:
    return tensor.to(device, torch.float16, **how)


Case = tuple[Callable[[Any], object], str, list[int], int, dict[str, int]]
"""What runs, the direction, the bytes of each copy, the waits, the operations."""
CASES: dict[str, Case] = {
    "blocking": (lambda x: x.host.to(DEVICE), TO, [KIB], 1, {}),
    "blocking, pinned": (lambda x: x.host.pin_memory().to(DEVICE), TO, [KIB], 1, {}),
    "queued": (lambda x: x.host.to(DEVICE, non_blocking=True), TO, [KIB], 0, {}),
    "into": (lambda x: x.there.copy_(x.host), TO, [KIB], 1, {}),
    "into, queued": (lambda x: x.there.copy_(x.host, non_blocking=True), TO, [KIB], 0, {}),
    "turned": (lambda x: x.host.t().to(DEVICE), TO, [KIB], 1, {}),
    "complex": (lambda x: torch.polar(x.host, x.host).to(DEVICE), TO, [2 * KIB], 1, {}),
    "cast on the host": (lambda x: half(x.host, DEVICE), TO, [KIB // 2], 1, {}),
    "cast on the device": (
        lambda x: half(x.host, DEVICE, non_blocking=True),
        *(TO, [KIB], 0, {"aten::copy_": 1}),
    ),
    "repeated on the host": (lambda x: x.there.copy_(x.host[0]), TO, [KIB], 1, {}),
    "repeated, on the device": (
        lambda x: x.there.expand(2, 16, 16).cpu(),
        *(BACK, [2 * KIB], 1, {"aten::clone": 1}),
    ),
    "into a column": (
        lambda x: x.there[:, 0].copy_(x.host[0]),
        *(TO, [64], 1, {"aten::copy_": 1}),
    ),
    "into columns": (
        lambda x: x.there[:, :8].copy_(x.host[:, :8]),
        *(TO, [KIB // 2], 1, {"aten::copy_": 1}),
    ),
    "back": (lambda x: x.there.cpu(), BACK, [KIB], 1, {}),
    "back, queued": (lambda x: x.there.to("cpu", non_blocking=True), BACK, [KIB], 0, {}),
    "back, turned": (lambda x: x.there.t().cpu(), BACK, [KIB], 1, {}),
    "back, a column": (lambda x: x.there[:, 0].cpu(), BACK, [64], 1, {"aten::clone": 1}),
    "back, cast on the host": (lambda x: half(x.there, "cpu"), BACK, [KIB], 1, {}),
    "back, cast on the device": (
        lambda x: half(x.there, "cpu", non_blocking=True),
        *(BACK, [KIB // 2], 0, {"aten::_to_copy": 1}),
    ),
    "of nothing": (lambda x: x.host[:0].to(DEVICE), TO, [], 0, {}),
    "within": (lambda x: x.there.half(), TO, [], 0, {"aten::_to_copy": 1}),
    "a tensor of numbers": (lambda x: torch.tensor([1.0, 2.0], device=DEVICE), TO, [8], 1, {}),
    "a number in an operation": (lambda x: x.there + 2, TO, [], 0, {"aten::add": 1}),
    "a host tensor of one": (lambda x: x.there * x.one, TO, [], 0, {"aten::mul": 1}),
    "fill_": (lambda x: x.there.fill_(x.one), TO, [], 0, {"aten::fill_": 1}),
    "where": (
        lambda x: torch.where(x.mask, x.there.half(), x.one),
        *(TO, [2], 1, {"aten::where": 1, "aten::_to_copy": 1}),
    ),
    "one element": (lambda x: x.there.__setitem__((0, 0), 7), TO, [4], 1, {}),
    "a row": (lambda x: x.there.__setitem__(0, 7), TO, [], 0, {"aten::fill_": 1}),
    "indices": (lambda x: x.there[x.rows], TO, [16], 1, {"aten::index": 1}),
    "a list": (lambda x: x.there[[0, 1]], TO, [16], 1, {"aten::index": 1}),
    "a host mask": (lambda x: x.there[x.host_mask], TO, [64], 0, {"aten::index": 1}),
    "a mask": (lambda x: x.there[x.mask], TO, [], 1, {"aten::nonzero": 1, "aten::index": 1}),
    "put at indices": (
        lambda x: x.there.__setitem__(x.rows, 7),
        *(TO, [16, 4], 2, {"aten::index_put_": 1}),
    ),
    "put at a host mask": (
        lambda x: x.there.__setitem__(x.host_mask, x.eight),
        *(TO, [64], 0, {"aten::index_put_": 1}),
    ),
    "put at a mask": (
        lambda x: x.there.__setitem__(x.mask, 7),
        *(TO, [], 0, {"aten::index_put_": 1}),
    ),
    "put at a mask, from the device": (
        lambda x: x.there.__setitem__(x.mask, x.one_there),
        *(TO, [], 1, {"aten::nonzero": 1, "aten::index_put_": 1}),
    ),
    "masked_fill": (
        lambda x: x.there.masked_fill_(x.mask, x.one),
        *(TO, [], 0, {"aten::masked_fill_": 1}),
    ),
    "masked_fill, from the device": (
        lambda x: x.there.masked_fill_(x.mask, x.one_there),
        *(TO, [], 1, {"aten::_local_scalar_dense": 1, "aten::masked_fill_": 1}),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_copies_waits_and_operations_are_torchs(case: str, simulation: Simulation) -> None:
    run, direction, sizes_bytes, waits, operations = CASES[case]
    given, before = sides(), simulation.meter.counts()
    run(given)
    counts = simulation.meter.counts().less(before)
    copies, volume = (
        (COPIES_TO_DEVICE, BYTES_TO_DEVICE) if direction == TO else (COPIES_TO_HOST, BYTES_TO_HOST)
    )
    place = f"the caller ({direction})"
    assert counts.copy_places == ({place: len(sizes_bytes)} if sizes_bytes else {})
    assert counts.copy_bytes == ({place: sum(sizes_bytes)} if sizes_bytes else {})
    assert counts.totals.get(copies, 0) == len(sizes_bytes)
    assert counts.totals.get(volume, 0) == sum(sizes_bytes)
    assert counts.totals.get(SYNCS, 0) == waits
    assert sum(counts.sync_places.values()) == waits
    assert counts.operations == operations


def test_values_come_through_casts_and_temporaries(simulation: Simulation) -> None:
    x = sides()
    x.there[:, 0].copy_(torch.arange(16.0))
    assert x.there[:3, 0].tolist() == [0, 1, 2]
    assert half(x.host, DEVICE, non_blocking=True)[0, :2].tolist() == [1, 1]
    assert half(x.there, "cpu")[2, :2].tolist() == [2, 33]
    x.there[x.rows] = 7
    assert torch.where(x.mask, x.there, x.one)[1:3, 0].tolist() == [7, 2]


def test_a_cast_on_the_device_takes_memory_there(simulation: Simulation) -> None:
    host, allocator = torch.empty(2**20), simulation.memory.allocator
    for queued, extra in ((False, 0), (True, 4 * 2**20)):
        allocator.reset_peaks()
        before = allocator.allocated_bytes
        kept = half(host, DEVICE, non_blocking=queued)
        assert allocator.allocated_bytes - before == 2 * kept.numel()
        assert allocator.peak_allocated_bytes - before == 2 * kept.numel() + extra
        del kept


def test_what_comes_back_queued_is_pinned(simulation: Simulation) -> None:
    x = sides()
    assert x.there.to("cpu", non_blocking=True).is_pinned()
    assert not x.there.to("cpu").is_pinned()


def test_the_place_of_a_copy_is_the_librarys_function(simulation: Simulation) -> None:
    from diffusers.image_processor import VaeImageProcessor

    before = simulation.meter.counts()
    VaeImageProcessor().postprocess(torch.zeros(1, 3, 8, 8, device=DEVICE), output_type="np")
    found: Counts = simulation.meter.counts().less(before)
    assert found.copy_places == {"diffusers/image_processor.py:pt_to_numpy (to the host)": 1}
    assert found.copy_bytes == {"diffusers/image_processor.py:pt_to_numpy (to the host)": 768}
    assert found.sync_places == {"diffusers/image_processor.py:pt_to_numpy (copy to the host)": 1}
    assert f"bytes copied at {next(iter(found.copy_bytes))}" in found.labelled()
