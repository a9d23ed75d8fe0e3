"""The replay of torch's caching allocator, beside a model that looks at every block."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.devices.simulated.allocator import Block, CachingAllocator, OutOfDeviceMemory

KIB, MIB, GIB = 2**10, 2**20, 2**30


def allocate(allocator: CachingAllocator, size_bytes: int) -> Block:
    """A block, where the size is not zero."""
    block = allocator.malloc(size_bytes)
    assert block is not None
    return block


def test_a_full_device_says_what_is_left() -> None:
    allocator = CachingAllocator(3 * GIB)
    allocator.malloc(2 * GIB)
    with pytest.raises(OutOfDeviceMemory) as raised:
        allocator.malloc(1085 * GIB + 1)
    assert str(raised.value) == (
        "simulated out of memory: 1085.00 GiB requested, 1.00 GiB of 3.00 GiB are free, "
        "and 0.00 MiB in fragments"
    )


BOUNDARIES = [512, MIB, 2 * MIB, 10 * MIB, 11 * MIB, 20 * MIB]
SIZES = st.one_of(
    st.integers(0, 4 * KIB),
    st.integers(1, 4 * MIB),
    st.integers(1, 40 * MIB),
    st.builds(int.__add__, st.sampled_from(BOUNDARIES), st.sampled_from([-512, -1, 0, 1, 512])),
)
CALLS = st.lists(
    st.one_of(
        SIZES.map(lambda size: ("malloc", size)),
        SIZES.map(lambda size: ("malloc", size)),
        st.integers(0, 1000).map(lambda position: ("free", position)),
        st.sampled_from([("empty_cache", 0), ("reset_peaks", 0)]),
    ),
    max_size=60,
)
CAPACITIES_MIB = st.just(math.inf) | st.integers(1, 100)


def segment_bytes(rounded: int) -> int:
    """The size of a new segment for a request."""
    if rounded <= MIB:
        return 2 * MIB
    return 20 * MIB if rounded < 10 * MIB else -(-rounded // (2 * MIB)) * 2 * MIB


def segments(allocator: CachingAllocator) -> Iterator[list[Block]]:
    """Every segment as its blocks, each by ascending address."""
    for first in allocator._segments.values():
        blocks = [first]
        while (behind := blocks[-1].next) is not None:
            blocks.append(behind)
        yield blocks


def best_fit(allocator: CachingAllocator, rounded: int) -> tuple[int, int] | None:
    """Size and address of the block for a request, found by looking at all; None if none fits."""
    fitting = [
        (block.size_bytes, block.address)
        for blocks in segments(allocator)
        if (sum(b.size_bytes for b in blocks) == 2 * MIB) == (rounded <= MIB)
        for block in blocks
        if block.free and block.size_bytes >= rounded
    ]
    return min(fitting, default=None)


def reserved_in_use(allocator: CachingAllocator) -> int:
    """Bytes of the segments of which some block is in use."""
    return sum(
        sum(block.size_bytes for block in blocks)
        for blocks in segments(allocator)
        if not all(block.free for block in blocks)
    )


def malloc(allocator: CachingAllocator, size_bytes: int) -> Block | None:
    """Ask for a block and hold it to torch's rules; None where the device is full, and may be."""
    rounded = -(-size_bytes // 512) * 512
    fit, segment = best_fit(allocator, rounded), segment_bytes(rounded)
    before, in_use = allocator.reserved_bytes, reserved_in_use(allocator)
    try:
        block = allocate(allocator, size_bytes)
    except OutOfDeviceMemory:
        assert fit is None
        assert allocator.reserved_bytes == in_use > allocator.capacity_bytes - segment
        return None
    available = segment if fit is None else fit[0]
    splits = available - rounded > (0 if rounded <= MIB else MIB)
    assert block.size_bytes == (rounded if splits else available)
    if fit is not None:
        assert (block.address, allocator.reserved_bytes) == (fit[1], before)
    elif before + segment <= allocator.capacity_bytes:
        assert allocator.reserved_bytes == before + segment, "what is cached is kept"
    else:
        assert allocator.reserved_bytes == in_use + segment
    return block


def check(allocator: CachingAllocator, live: list[tuple[Block, int]]) -> None:
    """What holds between any two calls."""
    end, used, reserved = 0, [], 0
    for blocks in segments(allocator):
        assert blocks[0].address >= end, "segments overlap"
        end = blocks[0].address
        for block in blocks:
            assert block.address == end, "a gap or an overlap between blocks"
            end += block.size_bytes
        assert not any(before.free and behind.free for before, behind in pairwise(blocks))
        used += [block for block in blocks if not block.free]
        reserved += sum(block.size_bytes for block in blocks)
    assert {id(block) for block in used} == {id(block) for block, _ in live}
    assert allocator.requested_bytes == sum(size for _, size in live)
    assert allocator.allocated_bytes == sum(block.size_bytes for block in used)
    assert allocator.reserved_bytes == reserved <= allocator.capacity_bytes


@settings(max_examples=240, deadline=None, derandomize=True, database=None)
@given(CALLS, CAPACITIES_MIB)
def test_any_sequence_of_calls_follows_the_rules(
    calls: list[tuple[str, int]], capacity_mib: float
) -> None:
    allocator = CachingAllocator(capacity_mib * MIB)
    assert allocator.malloc(0) is None
    allocator.free(None)
    live: list[tuple[Block, int]] = []
    peak_allocated = peak_reserved = 0
    for what, number in calls:
        if what == "malloc" and number:
            if block := malloc(allocator, number):
                live.append((block, number))
        elif what == "free" and live:
            allocator.free(live.pop(number % len(live))[0])
        elif what == "empty_cache":
            in_use = reserved_in_use(allocator)
            allocator.empty_cache()
            assert allocator.reserved_bytes == in_use
        elif what == "reset_peaks":
            allocator.reset_peaks()
            peak_allocated = peak_reserved = 0
        check(allocator, live)
        peak_allocated = max(peak_allocated, allocator.allocated_bytes)
        peak_reserved = max(peak_reserved, allocator.reserved_bytes)
        assert allocator.peak_allocated_bytes == peak_allocated
        assert allocator.peak_reserved_bytes == peak_reserved
    for block, _ in live:
        allocator.free(block)
    check(allocator, [])
    allocator.empty_cache()
    allocator.reset_peaks()
    assert allocator.reserved_bytes == allocator.peak_reserved_bytes == 0
    assert allocator.peak_allocated_bytes == 0
