"""Races between streams: found by vector clocks where, and only where, no path of waits leads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.devices.simulated.ordering import DEFAULT, Clock, FreedMemory, Ordering, Use

STREAMS, STORAGES, EVENTS = 3, 3, 2
KEYS = st.frozensets(st.integers(0, STORAGES - 1), max_size=2)
STREAM = st.integers(0, STREAMS - 1)
EVENT = st.integers(0, EVENTS - 1)
LAUNCH = st.tuples(st.just("launch"), STREAM, KEYS, KEYS)
STEP = st.one_of(
    LAUNCH,
    LAUNCH,  # twice as often as others
    st.tuples(st.just("record"), STREAM, EVENT),
    st.tuples(st.just("wait"), STREAM, EVENT),
    st.tuples(st.just("host waits"), STREAM),
    st.tuples(st.just("renew"), STREAM, st.integers(0, STORAGES - 1)),
)
Memory = tuple[int, int]
"""Where a storage lies: its number, and the stream that asked for it, of which each has its own."""


def has_race(program: Sequence[tuple[Any, ...]]) -> bool:
    """Whether two launches that conflict are joined by no path of a graph of all that happens.

    A storage that is renewed lies where the last one lay that the same stream asked for. There a
    write conflicts with all earlier uses, but a read with those of the same storage only.
    """
    before: list[set[int]] = []  # by node, all nodes from which a path leads here
    last = [set[int]() for _ in range(STREAMS)]
    marks = [set[int]() for _ in range(EVENTS)]
    host: set[int] = set()
    homes, ages = [DEFAULT] * STORAGES, [0] * STORAGES
    reads_of: list[tuple[int, Memory, int]] = []  # node, memory, age of the storage
    writes_of: list[tuple[int, Memory, int]] = []
    for action, number, *rest in program:
        if action == "host waits":
            host |= last[number]
            continue
        if action == "renew":
            homes[rest[0]], ages[rest[0]] = number, ages[rest[0]] + 1
            continue
        node = len(before)
        before.append(last[number] | host | (marks[rest[0]] if action == "wait" else set()))
        last[number] = before[node] | {node}
        if action == "record":
            marks[rest[0]] = set(last[number])
        if action == "launch":
            reads, writes = ({((k, homes[k]), ages[k]) for k in keys} for keys in rest)
            written = {memory for memory, _ in writes}
            for other, memory, age in (*reads_of, *writes_of):
                is_write = (other, memory, age) in writes_of
                conflict = memory in written or (is_write and (memory, age) in reads)
                if conflict and other not in before[node]:
                    return True
            reads_of += [(node, memory, age) for memory, age in reads]
            writes_of += [(node, memory, age) for memory, age in writes]
    return False


def run(program: Sequence[tuple[Any, ...]]) -> Ordering:
    ordering = Ordering()
    for _ in range(STREAMS - 1):
        ordering.new_stream()
    for key in range(STORAGES):
        ordering.allocated(key, 100 * key, 100)
    events: list[Clock] = [{} for _ in range(EVENTS)]
    for action, number, *rest in program:
        if action == "launch":
            ordering.current = number
            ordering.launch("a kernel", *(dict.fromkeys(keys, "x") for keys in rest))
        elif action == "record":
            events[rest[0]] = ordering.clock(number)
        elif action == "wait":
            ordering.wait(number, events[rest[0]])
        elif action == "renew":
            ordering.current = number
            ordering.freed(rest[0], 100 * rest[0], 100)
            ordering.allocated(rest[0], 100 * rest[0], 100)
        else:
            ordering.host_waits_for(number)
    return ordering


@settings(max_examples=1000, deadline=None)
@given(st.lists(STEP, max_size=16))
def test_a_race_is_found_exactly_where_no_path_of_waits_leads(program: list[Any]) -> None:
    assert bool(run(program).races) == has_race(program)


COPY: tuple[Any, ...] = ("launch", 1, frozenset(), frozenset({0}))
USE: tuple[Any, ...] = ("launch", 0, frozenset({0}), frozenset({1}))


def test_the_sentence_names_both_and_counts_the_others() -> None:
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


def test_memory_that_another_stream_may_use_is_not_to_be_given_away() -> None:
    sentence = (
        "another copy on stream 1 writes a tensor (y) to memory that a kernel on the default "
        "stream may still use: it was freed without a wait or a record_stream"
    )
    for start, races in ((99, [sentence]), (100, [])):
        ordering = run([("renew", 1, 0), COPY, ("host waits", 1), USE])
        ordering.freed(0, 0, 100)
        ordering.current = 1
        ordering.allocated(3, start, 50)
        ordering.launch("another copy", {}, {3: "y"})
        assert ordering.races == races


# Who may still use a stretch of freed memory, held against a model that knows every byte

BYTES = 12
STRETCH = st.tuples(st.integers(0, BYTES - 1), st.integers(1, BYTES)).map(
    lambda pair: (pair[0], min(sum(pair), BYTES))
)


@settings(max_examples=300, deadline=None)
@given(st.lists(STRETCH, max_size=20))
def test_every_byte_keeps_its_use_until_it_is_asked_for(stretches: list[tuple[int, int]]) -> None:
    """Each stretch is asked for, used once, and freed."""
    memory, model = FreedMemory(), [frozenset[Use]()] * BYTES
    for position, (start, end) in enumerate(stretches):
        assert set(memory.take(start, end)) == frozenset().union(*model[start:end])
        assert memory.take(start, end) == []
        use = Use(0, position, "a kernel")
        memory.put(start, end, [use])
        model[start:end] = [frozenset({use})] * (end - start)
    assert set(memory.take(0, BYTES)) == frozenset().union(*model)
