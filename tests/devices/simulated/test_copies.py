"""Copies between host and device, and the waits for them, as torch's source says (`copies.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from fixtures.devices.simulated.simulation import DEVICE, Simulation
from fixtures.records import counts as kinds
from fixtures.records.counts import Counts, Row, less

KIB = 1024


def sides() -> SimpleNamespace:
    """fp32 tensors of 1 KiB on either side, and smaller ones."""
    there = torch.arange(256.0, device=DEVICE).reshape(16, 16).clone()
    return SimpleNamespace(
        host=torch.ones(16, 16),
        there=there,
        mask=there > 3,
        number=torch.tensor(2.0),
        zero=torch.zeros((), device=DEVICE),
        rows=torch.tensor([0, 1]),
        eight=torch.zeros(8, 16, device=DEVICE),
        host_mask=torch.tensor([True, False] * 8),
    )


def half(tensor: torch.Tensor, device: Any, **how: Any) -> torch.Tensor:
    return tensor.to(device, torch.float16, **how)


@dataclass(frozen=True)
class Case:
    """What runs, the bytes of each copy in either direction, the waits, and the operations."""

    run: Callable[[Any], object]
    there: Sequence[int] = ()
    back: Sequence[int] = ()
    waits: int = 0
    ran: Sequence[str] = ()


CASES: dict[str, Case] = {
    "blocking": Case(lambda x: x.host.to(DEVICE), there=[KIB], waits=1),
    "queued": Case(lambda x: x.host.to(DEVICE, non_blocking=True), there=[KIB]),
    "into": Case(lambda x: x.there.copy_(x.host), there=[KIB], waits=1),
    "complex": Case(lambda x: torch.polar(x.host, x.host).to(DEVICE), there=[2 * KIB], waits=1),
    "cast on the host": Case(lambda x: half(x.host, DEVICE), there=[KIB // 2], waits=1),
    "cast on the device": Case(
        lambda x: half(x.host, DEVICE, non_blocking=True), there=[KIB], ran=["copy_"]
    ),
    "repeated on the host": Case(lambda x: x.there.copy_(x.host[0]), there=[KIB], waits=1),
    "repeated, on the device": Case(
        lambda x: x.there.expand(2, 16, 16).cpu(), back=[2 * KIB], waits=1, ran=["clone"]
    ),
    "into a column": Case(
        lambda x: x.there[:, 0].copy_(x.host[0]), there=[64], waits=1, ran=["copy_"]
    ),
    "into columns": Case(
        lambda x: x.there[:, :8].copy_(x.host[:, :8]), there=[KIB // 2], waits=1, ran=["copy_"]
    ),
    "back": Case(lambda x: x.there.cpu(), back=[KIB], waits=1),
    "back, queued": Case(lambda x: x.there.to("cpu", non_blocking=True), back=[KIB]),
    "back, a column": Case(lambda x: x.there[:, 0].cpu(), back=[64], waits=1, ran=["clone"]),
    "back, cast on the host": Case(lambda x: half(x.there, "cpu"), back=[KIB], waits=1),
    "back, cast on the device": Case(
        lambda x: half(x.there, "cpu", non_blocking=True), back=[KIB // 2], ran=["_to_copy"]
    ),
    "of nothing": Case(lambda x: x.host[:0].to(DEVICE)),
    "a tensor of numbers": Case(
        lambda x: torch.tensor([1.0, 2.0], device=DEVICE), there=[8], waits=1
    ),
    "a host tensor of one": Case(lambda x: x.there * x.number, ran=["mul"]),
    "fill_": Case(lambda x: x.there.fill_(x.number), ran=["fill_"]),
    "where": Case(
        lambda x: torch.where(x.mask, x.there.half(), x.number),
        there=[2],
        waits=1,
        ran=["where", "_to_copy"],
    ),
    "one element": Case(lambda x: x.there.__setitem__((0, 0), 7), there=[4], waits=1),
    "a row": Case(lambda x: x.there.__setitem__(0, 7), ran=["fill_"]),
    "indices": Case(lambda x: x.there[x.rows], there=[16], waits=1, ran=["index"]),
    "a host mask": Case(lambda x: x.there[x.host_mask], there=[64], ran=["index"]),
    "a mask": Case(lambda x: x.there[x.mask], waits=1, ran=["nonzero", "index"]),
    "put at indices": Case(
        lambda x: x.there.__setitem__(x.rows, 7), there=[16, 4], waits=2, ran=["index_put_"]
    ),
    "put at a host mask": Case(
        lambda x: x.there.__setitem__(x.host_mask, x.eight), there=[64], ran=["index_put_"]
    ),
    "put at a mask": Case(lambda x: x.there.__setitem__(x.mask, 7), ran=["index_put_"]),
    "put at a mask, from the device": Case(
        lambda x: x.there.__setitem__(x.mask, x.zero), waits=1, ran=["nonzero", "index_put_"]
    ),
    "masked_fill": Case(lambda x: x.there.masked_fill_(x.mask, x.number), ran=["masked_fill_"]),
    "masked_fill, from the device": Case(
        lambda x: x.there.masked_fill_(x.mask, x.zero),
        waits=1,
        ran=["_local_scalar_dense", "masked_fill_"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_copies_waits_and_operations_are_torchs(name: str, simulation: Simulation) -> None:
    case, given, before = CASES[name], sides(), simulation.meter.tally.copy()
    case.run(given)
    counts = Counts.of(less(simulation.meter.tally, before))
    for copies, volume, sizes in (
        (kinds.COPIES_TO_DEVICE, kinds.BYTES_TO_DEVICE, case.there),
        (kinds.COPIES_TO_HOST, kinds.BYTES_TO_HOST, case.back),
    ):
        assert (counts.total(copies), counts.total(volume)) == (len(sizes), sum(sizes))
        assert counts.places(copies) == ({"the caller"} if sizes else set())
    assert counts.total(kinds.SYNCS) == case.waits
    assert counts.by_name(kinds.OPERATIONS) == {f"aten::{name}": 1 for name in case.ran}


def test_values_come_through_casts_and_temporaries(simulation: Simulation) -> None:
    x = sides()
    x.there[:, 0].copy_(torch.arange(16.0))
    assert x.there[:3, 0].tolist() == [0, 1, 2]
    assert half(x.host, DEVICE, non_blocking=True)[0, :2].tolist() == [1, 1]
    assert half(x.there, "cpu")[2, :2].tolist() == [2, 33]
    x.there[x.rows] = 7
    assert torch.where(x.mask, x.there, x.number)[1:3, 0].tolist() == [7, 2]
    assert x.there.to("cpu", non_blocking=True).is_pinned()
    assert not x.there.to("cpu").is_pinned()


def test_a_cast_on_the_device_takes_memory_there(simulation: Simulation) -> None:
    host, allocator = torch.empty(2**20), simulation.memory.allocator
    for queued, extra in ((False, 0), (True, 4 * 2**20)):
        allocator.reset_peaks()
        before = allocator.allocated_bytes
        kept = half(host, DEVICE, non_blocking=queued)
        assert allocator.allocated_bytes - before == 2 * kept.numel()
        assert allocator.peak_allocated_bytes - before == 2 * kept.numel() + extra
        del kept


def test_the_place_of_a_copy_is_the_librarys_function(simulation: Simulation) -> None:
    from diffusers.image_processor import VaeImageProcessor

    before = simulation.meter.tally.copy()
    VaeImageProcessor().postprocess(torch.zeros(1, 3, 8, 8, device=DEVICE), output_type="np")
    counts = less(simulation.meter.tally, before)
    place = "diffusers/image_processor.py:pt_to_numpy"
    assert counts[Row(kinds.COPIES_TO_HOST, "", place)] == 1
    assert counts[Row(kinds.BYTES_TO_HOST, "", place)] == 768
    assert counts[Row(kinds.SYNCS, "copy to the host", place)] == 1
