"""Segments that expand, page by page, beside those that do not."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.devices.simulated.allocator import Block, CachingAllocator, OutOfDeviceMemory
from fixtures.devices.simulated.expandable import ExpandableAllocator, is_expandable
from fixtures.records.run import RESERVED, WHOLE
from fixtures.records.units import GIB, MIB
from tests.devices.simulated.test_allocator import ANY_SEQUENCE, CALLS
from tests.support.simulated_runs import simulate, simulated


def mapped(allocator: ExpandableAllocator) -> list[list[Block]]:
    """The blocks of each segment that have memory; runs of them are apart where pages are not."""
    return [
        [block for block in blocks if block.address not in allocator._unmapped]
        for blocks in allocator.segments()
    ]


def check(allocator: ExpandableAllocator, live: list[tuple[Block, int]]) -> None:
    """What holds between any two calls."""
    for blocks in allocator.segments():
        for one, other in pairwise(blocks):
            assert one.address + one.size_bytes == other.address
            assert not (one.free and other.free)
            assert not {one.address, other.address} <= allocator._unmapped.keys()
    used = [block for blocks in mapped(allocator) for block in blocks if not block.free]
    assert {id(block) for block in used} == {id(block) for block, _ in live}
    assert all(0 <= block.size_bytes - size < 512 for block, size in live)
    small_bytes, large_bytes = (sum(b.size_bytes for b in one) for one in mapped(allocator))
    assert small_bytes % (2 * MIB) == large_bytes % (20 * MIB) == 0
    assert allocator.reserved_bytes == small_bytes + large_bytes <= allocator.capacity_bytes
    assert allocator.allocated_bytes == sum(block.size_bytes for block in used)


@ANY_SEQUENCE
@given(CALLS, st.one_of(st.just(math.inf), st.integers(20, 200).map(lambda mib: mib * MIB)))
def test_any_sequence_keeps_the_books(calls: list[tuple[str, int]], capacity_bytes: float) -> None:
    allocator = ExpandableAllocator(capacity_bytes)
    live: list[tuple[Block, int]] = []
    for what, number in calls:
        if what == "malloc" and number:
            try:
                block = allocator.malloc(number)
            except OutOfDeviceMemory:
                assert allocator.reserved_bytes + 20 * MIB + number > capacity_bytes
            else:
                assert block is not None
                live.append((block, number))
        elif what == "free" and live:
            allocator.free(live.pop(number % len(live))[0])
        elif what == "empty_cache":
            allocator.empty_cache()
        check(allocator, live)
        assert allocator.peak_reserved_bytes >= allocator.reserved_bytes
    for block, _ in live:
        allocator.free(block)
    allocator.empty_cache()
    assert allocator.reserved_bytes == allocator.allocated_bytes == 0
    check(allocator, [])


@pytest.mark.parametrize(
    ("size_bytes", "reserved_mib"),
    [(1, 2), (MIB, 2), (MIB + 1, 20), (20 * MIB, 20), (30 * MIB, 40), (40 * MIB + 1, 60)],
)
def test_whole_pages_are_mapped(size_bytes: int, reserved_mib: int) -> None:
    allocator = ExpandableAllocator(GIB)
    allocator.malloc(size_bytes)
    assert allocator.reserved_bytes == reserved_mib * MIB


def test_what_is_free_grows_where_another_segment_would_be_made() -> None:
    reserved = []
    for allocator in (CachingAllocator(GIB), ExpandableAllocator(GIB)):
        allocator.free(allocator.malloc(100 * MIB))
        allocator.malloc(200 * MIB)
        reserved.append(allocator.reserved_bytes)
    assert reserved == [300 * MIB, 200 * MIB]


def test_a_hole_serves_what_fits_and_keeps_its_pages_else() -> None:
    allocator = ExpandableAllocator(GIB)
    first, _ = allocator.malloc(100 * MIB), allocator.malloc(20 * MIB)
    allocator.free(first)
    allocator.malloc(120 * MIB)
    assert allocator.reserved_bytes == 240 * MIB
    block = allocator.malloc(60 * MIB)
    assert block is not None
    assert block.address == min(b.address for b in mapped(allocator)[1])
    assert allocator.reserved_bytes == 240 * MIB


def test_emptying_the_cache_unmaps_pages_between_blocks_in_use() -> None:
    allocator = ExpandableAllocator(GIB)
    held = [allocator.malloc(30 * MIB) for _ in range(4)]
    for block in held[1:3]:
        allocator.free(block)
    allocator.empty_cache()
    # 30 to 90 MiB are free: pages from 40 to 80 MiB.
    assert allocator.reserved_bytes == 80 * MIB
    allocator.malloc(50 * MIB)
    assert allocator.reserved_bytes == 120 * MIB


def test_of_two_fits_the_one_that_cannot_grow_is_taken() -> None:
    allocator = ExpandableAllocator(GIB)
    hole, _ = allocator.malloc(30 * MIB), allocator.malloc(5 * MIB)
    end = allocator.malloc(24 * MIB)
    assert hole is not None
    assert end is not None
    address = hole.address
    allocator.free(hole)
    allocator.free(end)  # 25 MiB with what is left of its page: smaller, and it can grow
    block = allocator.malloc(24 * MIB)
    assert block is not None
    assert block.address == address


def test_a_full_device_unmaps_what_is_free_before_it_gives_up() -> None:
    allocator = ExpandableAllocator(60 * MIB)
    small_ones = [allocator.malloc(MIB) for _ in range(20)]
    for block in small_ones:
        allocator.free(block)
    assert allocator.reserved_bytes == 20 * MIB
    allocator.malloc(60 * MIB)
    assert allocator.reserved_bytes == 60 * MIB
    with pytest.raises(OutOfDeviceMemory, match=r"0\.00 MiB of 60\.00 MiB are free"):
        allocator.malloc(1)


@pytest.mark.parametrize(
    ("environment", "expandable"),
    [
        ({}, False),
        ({"PYTORCH_CUDA_ALLOC_CONF": ""}, False),
        ({"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, True),
        ({"PYTORCH_ALLOC_CONF": "max_split_size_mb:64, expandable_segments:true"}, True),
        ({"PYTORCH_ALLOC_CONF": "expandable_segments:False"}, False),
        (
            {
                "PYTORCH_ALLOC_CONF": "max_split_size_mb:64",
                "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
            },
            False,
        ),
    ],
)
def test_the_setting_is_torchs_own(environment: dict[str, str], *, expandable: bool) -> None:
    assert is_expandable(environment) is expandable


def test_a_call_is_modelled_with_it_and_its_exact_peaks_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PYTORCH_ALLOC_CONF", raising=False)
    monkeypatch.delenv("PYTORCH_CUDA_ALLOC_CONF", raising=False)
    usual = simulated()
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "expandable_segments:True")
    expanding = simulate()
    assert expanding.component_peak_bytes == usual.component_peak_bytes
    assert expanding.modelled_peak_bytes[RESERVED] % (2 * MIB) == 0
    assert expanding.modelled_peak_bytes != usual.modelled_peak_bytes
    assert expanding.modelled_peak_bytes[WHOLE] <= usual.modelled_peak_bytes[WHOLE]
