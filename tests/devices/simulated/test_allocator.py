"""The replay of torch's caching allocator: each rule by hand, and what holds for any sequence."""

from __future__ import annotations

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


def layout(allocator: CachingAllocator) -> list[list[tuple[int, bool]]]:
    """By segment, the size of every block and whether it is free."""
    return [[(block.size_bytes, block.free) for block in blocks] for blocks in allocator.segments()]


@pytest.fixture
def allocator() -> CachingAllocator:
    return CachingAllocator(GIB)


@pytest.mark.parametrize(
    ("asked", "rounded"), [(1, 512), (511, 512), (512, 512), (513, 1024), (100_000, 100_352)]
)
def test_requests_are_rounded_up_to_512_bytes(
    allocator: CachingAllocator, asked: int, rounded: int
) -> None:
    block = allocate(allocator, asked)
    assert (allocator.requested_bytes, allocator.allocated_bytes) == (asked, rounded)
    allocator.free(block)
    assert (allocator.requested_bytes, allocator.allocated_bytes) == (0, 0)


def test_zero_bytes_need_no_block(allocator: CachingAllocator) -> None:
    assert allocator.malloc(0) is None
    allocator.free(None)
    assert allocator.reserved_bytes == allocator.peak_allocated_bytes == 0


@pytest.mark.parametrize(
    ("asked", "segment"),
    [
        (1, 2 * MIB),
        (MIB - 1, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 1, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB - 511, 10 * MIB),
        (10 * MIB, 10 * MIB),
        (10 * MIB + 1, 12 * MIB),
        (12 * MIB, 12 * MIB),
        (12 * MIB + 1, 14 * MIB),
    ],
)
def test_a_new_segment_has_the_size_of_its_kind(
    allocator: CachingAllocator, asked: int, segment: int
) -> None:
    allocator.malloc(asked)
    assert allocator.reserved_bytes == allocator.peak_reserved_bytes == segment


def test_a_small_block_is_split_down_to_512_bytes(allocator: CachingAllocator) -> None:
    allocator.malloc(MIB)
    allocator.malloc(MIB - 512)
    assert layout(allocator) == [[(MIB, False), (MIB - 512, False), (512, True)]]
    allocator.malloc(1)
    assert allocator.reserved_bytes == allocator.allocated_bytes == 2 * MIB
    allocator.malloc(1)
    assert allocator.reserved_bytes == 4 * MIB


@pytest.mark.parametrize(
    ("asked", "allocated"),
    [
        (11 * MIB - 512, 11 * MIB - 512),  # 1 MiB + 512 B of a 12 MiB segment are left: split
        (11 * MIB, 12 * MIB),  # exactly 1 MiB is left: the block keeps it
        (11 * MIB + 1, 12 * MIB),
        (19 * MIB, 20 * MIB),
    ],
)
def test_a_large_block_keeps_a_rest_of_up_to_1_mib(
    allocator: CachingAllocator, asked: int, allocated: int
) -> None:
    block = allocate(allocator, asked)
    assert allocator.allocated_bytes == allocator.peak_allocated_bytes == allocated
    assert allocator.requested_bytes == asked
    allocator.free(block)
    assert allocator.allocated_bytes == allocator.requested_bytes == 0


def test_freed_memory_stays_reserved_until_the_cache_is_emptied(
    allocator: CachingAllocator,
) -> None:
    whole, small, part = (allocate(allocator, size) for size in (12 * MIB, KIB, 2 * MIB))
    allocator.free(whole)
    allocator.free(small)
    assert (allocator.allocated_bytes, allocator.reserved_bytes) == (2 * MIB, 34 * MIB)
    allocator.empty_cache()
    assert layout(allocator) == [[(2 * MIB, False), (18 * MIB, True)]]
    allocator.free(part)
    allocator.empty_cache()
    assert allocator.reserved_bytes == 0
    assert allocator.peak_reserved_bytes == 34 * MIB


def test_peaks_start_again_from_what_is_held(allocator: CachingAllocator) -> None:
    kept, freed = allocate(allocator, 12 * MIB), allocate(allocator, 14 * MIB)
    allocator.free(freed)
    assert allocator.peak_allocated_bytes == 26 * MIB
    allocator.empty_cache()
    allocator.reset_peaks()
    assert (allocator.peak_allocated_bytes, allocator.peak_reserved_bytes) == (12 * MIB, 12 * MIB)
    allocator.free(kept)
    allocator.malloc(10 * MIB)
    assert (allocator.peak_allocated_bytes, allocator.peak_reserved_bytes) == (12 * MIB, 12 * MIB)


def test_a_full_device_says_what_is_left() -> None:
    allocator = CachingAllocator(3 * GIB)
    allocator.malloc(2 * GIB)
    with pytest.raises(OutOfDeviceMemory) as raised:
        allocator.malloc(1085 * GIB + 1)
    assert str(raised.value) == (
        "simulated out of memory: 1085.00 GiB requested, 1.00 GiB of 3.00 GiB are free, "
        "and 0.00 MiB in fragments"
    )
    assert allocator.allocated_bytes == allocator.reserved_bytes == 2 * GIB
    allocator.malloc(GIB)
    assert allocator.reserved_bytes == 3 * GIB


def test_a_full_device_releases_what_is_cached_in_either_pool() -> None:
    allocator = CachingAllocator(24 * MIB)
    cached = [allocate(allocator, size) for size in (12 * MIB, KIB)]
    used = allocate(allocator, 10 * MIB)
    for block in cached:
        allocator.free(block)
    allocator.malloc(14 * MIB)
    assert used.free is False
    assert layout(allocator) == [[(10 * MIB, False)], [(14 * MIB, False)]]
    assert allocator.peak_reserved_bytes == 24 * MIB


def test_what_is_cached_is_kept_while_there_is_room() -> None:
    allocator = CachingAllocator(26 * MIB)
    allocator.free(allocator.malloc(12 * MIB))
    allocator.malloc(14 * MIB)
    assert allocator.reserved_bytes == 26 * MIB


def test_a_segment_in_use_counts_as_a_whole_against_the_capacity() -> None:
    allocator = CachingAllocator(30 * MIB)
    for size in (2 * MIB, 18 * MIB):
        block = allocate(allocator, size)
    allocator.free(block)
    with pytest.raises(OutOfDeviceMemory, match=r"20\.00 MiB requested, 10\.00 MiB of 30\.00 MiB"):
        allocator.malloc(18 * MIB + 1)


def test_freeing_twice_is_refused(allocator: CachingAllocator) -> None:
    first, second = allocate(allocator, KIB), allocate(allocator, KIB)
    for block in (first, second):
        allocator.free(block)
        with pytest.raises(ValueError, match="free already"):
            allocator.free(block)
    assert allocator.allocated_bytes == 0


def test_the_weights_of_a_transformer() -> None:
    """The double-stream blocks of Flux in bf16, with torch's own sizes added up by hand."""
    width = 3072
    linears = [
        *[(6 * width, width)] * 2,  # modulation
        *[(width, width)] * 8,  # attention: q, k, v and out, of the image and of the text
        *[(4 * width, width), (width, 4 * width)] * 2,  # feed-forward
    ]
    allocator = CachingAllocator(140 * GIB)
    for _ in range(19):
        for rows, columns in linears:
            allocator.malloc(2 * rows * columns)
            allocator.malloc(2 * rows)
        for _ in range(4):
            allocator.malloc(2 * 128)  # norms of q and k
    # 648 MiB of matrices, each a multiple of 2 MiB with a segment of its own; 180 KiB of biases.
    assert allocator.requested_bytes == 19 * (648 * MIB + 180 * KIB + 4 * 256)
    assert allocator.allocated_bytes == 19 * (648 * MIB + 180 * KIB + 4 * 512)
    assert allocator.reserved_bytes == 19 * 648 * MIB + 2 * 2 * MIB


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
        st.just(("empty_cache", 0)),
    ),
    max_size=60,
)
ANY_SEQUENCE = settings(max_examples=120, deadline=None, derandomize=True, database=None)


def expected_address(allocator: CachingAllocator, rounded: int) -> int | None:
    """Where a request belongs, found by looking at every block; None for a new segment."""
    fitting = [
        (block.size_bytes, block.address)
        for blocks in allocator.segments()
        if (sum(b.size_bytes for b in blocks) == 2 * MIB) == (rounded <= MIB)
        for block in blocks
        if block.free and block.size_bytes >= rounded
    ]
    return min(fitting)[1] if fitting else None


def check(allocator: CachingAllocator, live: list[tuple[Block, int]]) -> None:
    """What holds between any two calls."""
    end, used, reserved = 0, [], 0
    for blocks in allocator.segments():
        assert blocks[0].address >= end, "segments overlap"
        end = blocks[0].address
        for block in blocks:
            assert block.address == end, "a gap or an overlap between blocks"
            end += block.size_bytes
        assert not any(one.free and other.free for one, other in pairwise(blocks))
        used += [block for block in blocks if not block.free]
        reserved += sum(block.size_bytes for block in blocks)
    assert {id(block) for block in used} == {id(block) for block, _ in live}
    assert all(0 <= block.size_bytes - size < MIB + 512 for block, size in live)
    assert allocator.requested_bytes == sum(size for _, size in live)
    assert allocator.allocated_bytes == sum(block.size_bytes for block in used)
    assert allocator.reserved_bytes == reserved <= allocator.capacity_bytes


def run(allocator: CachingAllocator, calls: list[tuple[str, int]]) -> list[tuple[Block, int]]:
    """Make the calls, check after each of them, and return what is live."""
    live: list[tuple[Block, int]] = []
    peak_allocated = peak_reserved = 0
    for what, number in calls:
        if what == "malloc" and number:
            address = expected_address(allocator, -(-number // 512) * 512)
            reserved = allocator.reserved_bytes
            block = allocate(allocator, number)
            assert (address is None) == (allocator.reserved_bytes > reserved)
            assert address in (None, block.address)
            live.append((block, number))
        elif what == "free" and live:
            allocator.free(live.pop(number % len(live))[0])
        elif what == "empty_cache":
            allocator.empty_cache()
            assert all(any(not b.free for b in blocks) for blocks in allocator.segments())
        check(allocator, live)
        peak_allocated = max(peak_allocated, allocator.allocated_bytes)
        peak_reserved = max(peak_reserved, allocator.reserved_bytes)
    assert allocator.peak_allocated_bytes == peak_allocated
    assert allocator.peak_reserved_bytes == peak_reserved
    return live


@ANY_SEQUENCE
@given(CALLS)
def test_any_sequence_keeps_the_books(calls: list[tuple[str, int]]) -> None:
    allocator = CachingAllocator(1024 * GIB)
    for block, _ in run(allocator, calls):
        allocator.free(block)
    assert allocator.allocated_bytes == allocator.requested_bytes == 0
    assert all(len(blocks) == 1 and blocks[0].free for blocks in allocator.segments())
    allocator.empty_cache()
    assert allocator.reserved_bytes == 0
    assert list(allocator.segments()) == []


@ANY_SEQUENCE
@given(CALLS, st.integers(1, 100))
def test_a_full_device_stays_in_order(calls: list[tuple[str, int]], capacity_mib: int) -> None:
    allocator = CachingAllocator(capacity_mib * MIB)
    live: list[tuple[Block, int]] = []
    for what, number in calls:
        if what == "malloc" and number:
            try:
                live.append((allocate(allocator, number), number))
            except OutOfDeviceMemory:
                assert all(any(not b.free for b in blocks) for blocks in allocator.segments())
        elif what == "free" and live:
            allocator.free(live.pop(number % len(live))[0])
        check(allocator, live)
