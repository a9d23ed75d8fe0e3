"""A log of requests, asked of cards: held to an allocator that is asked as it goes."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.devices.simulated.allocator import Block, CachingAllocator, OutOfDeviceMemory
from fixtures.devices.simulated.requests import Replay, Request, Requests
from fixtures.records.units import GIB, MIB

STEP_BYTES = 8 * MIB

sizes = st.integers(1, 200 * MIB)
events = st.lists(
    st.one_of(
        st.tuples(st.just("malloc"), sizes),
        st.tuples(st.just("free"), st.integers(0, 40)),
        st.tuples(st.just("workspace"), sizes),
        st.tuples(st.just("empty cache"), st.just(0)),
        st.tuples(st.just("begin"), st.just(0)),
    ),
    min_size=1,
    max_size=40,
)


def logged(wanted: list[tuple[Request, int]]) -> Requests:
    """A log of all of it; a free is of the oldest block but `number`, if there is one."""
    alive: list[int] = []
    log = Requests()
    for address, (what, number) in enumerate(wanted):
        if what == "malloc":
            place = f", in place {address % 3}"
            log.add("malloc", address=address, size_bytes=number, place=place)
            alive.append(address)
        elif what == "free":
            if alive:
                log.add("free", address=alive.pop(number % len(alive)))
        else:
            log.add(what, size_bytes=number)
    return log


def as_it_goes(wanted: list[tuple[Request, int]], capacity_bytes: float) -> Replay:
    """The same from an allocator that loses its limit where it first refuses."""
    allocator = CachingAllocator(capacity_bytes)
    blocks: dict[int, Block | None] = {}
    refusal = None
    for address, (what, number) in enumerate(wanted):
        if what == "malloc":
            try:
                blocks[address] = allocator.malloc(number)
            except OutOfDeviceMemory as error:
                refusal = f"{error}, in place {address % 3}"
                allocator.capacity_bytes = math.inf
                blocks[address] = allocator.malloc(number)
        elif what == "free" and blocks:
            allocator.free(blocks.pop(list(blocks)[number % len(blocks)]))
        elif what == "workspace":
            try:
                allocator.free(allocator.malloc(number))
            except OutOfDeviceMemory:
                continue
        elif what == "empty cache":
            allocator.empty_cache()
        elif what == "begin":
            allocator.reset_peaks()
    return Replay(allocator.peak_allocated_bytes, allocator.peak_reserved_bytes, refusal)


@settings(max_examples=200, deadline=None)
@given(events, st.integers(0, 2 * GIB))
def test_every_card_shows_of_a_log_what_it_would_have_shown_of_the_run_and_the_smallest_is_known(
    wanted: list[tuple[Request, int]], capacity_bytes: int
) -> None:
    log = logged(wanted)
    needed_bytes = log.smallest_capacity_bytes()
    assert log.replay(capacity_bytes) == as_it_goes(wanted, capacity_bytes)
    assert as_it_goes(wanted, needed_bytes).refusal is None
    assert needed_bytes == 0 or as_it_goes(wanted, needed_bytes - STEP_BYTES).refusal
