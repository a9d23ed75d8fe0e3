"""The least memory for a log of requests, held to allocators that are really asked."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.devices.simulated.modelled import ModelledMemory, Requests
from fixtures.records.units import GIB, MIB

STEP_BYTES = 8 * MIB

sizes = st.integers(1, 200 * MIB)
events = st.lists(
    st.one_of(
        st.tuples(st.just("malloc"), sizes),
        st.tuples(st.just("free"), st.integers(0, 40)),
        st.tuples(st.just("pass_through"), sizes),
        st.tuples(st.just("empty_cache"), st.just(0)),
    ),
    min_size=1,
    max_size=40,
)


def asked(memory: ModelledMemory, wanted: list[tuple[str, int]]) -> None:
    """Ask the memory for all of it; a free is of the oldest block but `number`, if there is one."""
    alive: list[int] = []
    for address, (what, number) in enumerate(wanted):
        if what == "malloc":
            memory.malloc(address, number)
            alive.append(address)
        elif what == "free" and alive:
            memory.free(alive.pop(number % len(alive)))
        elif what == "pass_through":
            memory.pass_through(number)
        elif what == "empty_cache":
            memory.empty_cache()


@settings(max_examples=200, deadline=None)
@given(events, st.booleans())
def test_the_smallest_capacity_suffices_and_the_next_smaller_one_does_not(
    wanted: list[tuple[str, int]], expandable: bool
) -> None:
    log = Requests()
    asked(ModelledMemory(64 * GIB, expandable=expandable, requests=log), wanted)
    needed_bytes = log.smallest_capacity_bytes(expandable=expandable)

    def refused(capacity_bytes: int) -> bool:
        memory = ModelledMemory(capacity_bytes, expandable=expandable)
        asked(memory, wanted)
        return memory.refusal is not None

    assert not refused(needed_bytes)
    if needed_bytes:
        assert refused(needed_bytes - STEP_BYTES)


def test_a_workspace_is_no_need() -> None:
    log = Requests()
    memory = ModelledMemory(GIB, requests=log)
    memory.malloc(0, 100 * MIB)
    memory.pass_through(500 * MIB)
    assert memory.peak_reserved_bytes == 600 * MIB
    assert log.smallest_capacity_bytes() == 104 * MIB


def test_fragments_are_a_need() -> None:
    """What is free between blocks in use is no room for a larger one."""
    log = Requests()
    memory = ModelledMemory(GIB, requests=log)
    memory.malloc(0, 200 * MIB)
    memory.free(0)
    memory.malloc(1, 8 * MIB)  # at the start of the segment of 200 MiB
    memory.malloc(2, 196 * MIB)
    assert memory.peak_allocated_bytes == 204 * MIB
    assert log.smallest_capacity_bytes() == 400 * MIB
    assert log.smallest_capacity_bytes(expandable=True) < 260 * MIB


def test_a_refusal_says_where_and_is_the_first_one() -> None:
    places = iter(("first", "second"))
    memory = ModelledMemory(32 * MIB, where=lambda: f", in the {next(places)}")
    memory.malloc(0, 30 * MIB)
    memory.malloc(1, 30 * MIB)
    memory.malloc(2, 30 * MIB)
    assert memory.refusal == (
        "simulated out of memory: 30.00 MiB requested, 2.00 MiB of 32.00 MiB are free, and "
        "0.00 MiB in fragments, in the first"
    )


def test_an_empty_log_needs_nothing() -> None:
    assert Requests().smallest_capacity_bytes() == 0


def test_the_log_says_whether_a_card_suffices() -> None:
    log = Requests()
    log.malloc(0, 100 * MIB)
    assert log.fit(100 * MIB)
    assert not log.fit(100 * MIB - 1)
