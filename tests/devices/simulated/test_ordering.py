"""Races between streams: found by vector clocks where, and only where, no path of waits leads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.devices.simulated.ordering import DEFAULT, Clock, Ordering

STREAMS, STORAGES, EVENTS = 3, 3, 2
KEYS = st.frozensets(st.integers(0, STORAGES - 1), max_size=2)
STREAM = st.integers(0, STREAMS - 1)
EVENT = st.integers(0, EVENTS - 1)
STEP = st.one_of(
    st.tuples(st.just("launch"), STREAM, KEYS, KEYS),
    st.tuples(st.just("record"), STREAM, EVENT),
    st.tuples(st.just("wait"), STREAM, EVENT),
    st.tuples(st.just("host waits"), STREAM),
)


def has_race(program: Sequence[tuple[Any, ...]]) -> bool:
    """Whether two launches that conflict are joined by no path of a graph of all that happens."""
    before: list[set[int]] = []  # by node, all nodes from which a path leads here
    last = [set[int]() for _ in range(STREAMS)]
    marks = [set[int]() for _ in range(EVENTS)]
    host: set[int] = set()
    launches: list[tuple[int, frozenset[int], frozenset[int]]] = []
    for action, number, *rest in program:
        if action == "host waits":
            host |= last[number]
            continue
        node = len(before)
        before.append(last[number] | host | (marks[rest[0]] if action == "wait" else set()))
        last[number] = before[node] | {node}
        if action == "record":
            marks[rest[0]] = set(last[number])
        if action == "launch":
            reads, writes = rest
            for other, others_reads, others_writes in launches:
                conflict = writes & (others_reads | others_writes) or reads & others_writes
                if conflict and other not in before[node]:
                    return True
            launches.append((node, reads, writes))
    return False


def run(program: Sequence[tuple[Any, ...]]) -> Ordering:
    ordering = Ordering()
    for _ in range(STREAMS - 1):
        ordering.new_stream()
    events: list[Clock] = [{} for _ in range(EVENTS)]
    for action, number, *rest in program:
        if action == "launch":
            ordering.current = number
            ordering.launch("a kernel", *(dict.fromkeys(keys, "x") for keys in rest))
        elif action == "record":
            events[rest[0]] = ordering.clock(number)
        elif action == "wait":
            ordering.wait(number, events[rest[0]])
        else:
            ordering.host_waits_for(number)
    return ordering


@settings(max_examples=1000, deadline=None)
@given(st.lists(STEP, max_size=14))
def test_a_race_is_found_exactly_where_no_path_of_waits_leads(program: list[Any]) -> None:
    assert bool(run(program).races) == has_race(program)


COPY: tuple[Any, ...] = ("launch", 1, frozenset(), frozenset({0}))
USE: tuple[Any, ...] = ("launch", 0, frozenset({0}), frozenset({1}))


def test_the_sentence_names_both_and_counts_the_others() -> None:
    assert run([COPY, ("host waits", 1), USE]).sentence() is None
    assert run([COPY, ("record", 1, 0), ("wait", 0, 0), USE]).sentence() is None
    assert run([COPY, USE]).sentence() == (
        "a kernel on the default stream reads a tensor (x) that a kernel on stream 1 writes, and "
        "nothing makes it wait"
    )
    assert str(run([COPY, USE, USE]).sentence()).endswith("; and 1 more such race")
    assert str(run([COPY, USE, USE, USE]).sentence()).endswith("; and 2 more such races")


def test_a_stream_that_is_made_later_comes_after_what_the_host_has_waited_for() -> None:
    ordering = Ordering()
    ordering.launch("a kernel", {}, {0: "x"})
    unordered = ordering.new_stream()
    ordering.host_waits_for(DEFAULT)
    for stream in (ordering.new_stream(), unordered):
        ordering.current = stream
        ordering.launch("another", {0: "x"}, {})
    assert not ordering.races


def freed_and_reused(
    *, waits: bool = False, records: bool = False, start: int = 0, on: int = 1
) -> list[str]:
    """Stream 1 has a weight of 100 bytes; the default stream reads it; it is freed, and reused."""
    ordering = Ordering()
    ordering.current = ordering.new_stream()
    ordering.allocated(7, 0, 100)
    ordering.launch("a copy", {}, {7: "x"})
    ordering.host_waits_for(1)
    if records:
        ordering.record(7, DEFAULT)
    ordering.current = DEFAULT
    ordering.launch("a kernel", {7: "x"}, {})
    if waits:
        ordering.host_waits_for(DEFAULT)
    ordering.freed(7, 0, 100)
    ordering.current = on
    ordering.allocated(8, start, 50)
    return ordering.races


def test_memory_that_another_stream_may_use_is_not_to_be_given_away() -> None:
    assert freed_and_reused() == [
        "memory that a kernel on the default stream may still use is given away on stream 1: it "
        "was freed without a wait or a record_stream"
    ]
    assert len(freed_and_reused(start=99)) == 1
    assert not freed_and_reused(start=100)
    assert not freed_and_reused(waits=True)
    assert not freed_and_reused(records=True)
    assert not freed_and_reused(on=DEFAULT), "the default stream comes after its own kernel"


def test_what_the_host_reads_must_have_arrived() -> None:
    ordering = Ordering()
    ordering.arrives(3, ordering.launch("a copy", {}, {}))
    ordering.arrives(4, ordering.launch("a copy", {}, {}))
    assert ordering.host_must_look
    ordering.host_reads("numpy", [2])
    assert not ordering.races
    ordering.host_reads("numpy", [3])
    assert ordering.races == [
        "numpy reads on the host what a copy on the default stream may still be copying there: the "
        "host does not wait for the copy"
    ]
    ordering.host_waits_for_all()
    assert not ordering.host_must_look
    ordering.host_reads("numpy", [4])
    assert len(ordering.races) == 1
    ordering.arrives(4, ordering.launch("a copy", {}, {}))
    ordering.left(4)
    assert not ordering.host_must_look
