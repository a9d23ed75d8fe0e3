"""What each call leaves with the process is a fault by its kind; what happens once is none."""

from __future__ import annotations

import logging
import os
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from fixtures.devices import growth
from fixtures.measuring.observation import observe
from fixtures.metrics.faults import FILES, MEMORY, OBJECTS, THREADS
from fixtures.records.units import MIB
from tests.support.fake_device import FakeDevice
from tests.support.fake_scenarios import IMAGES, fake_scenario

LEAST_BYTES = 2**16
ROOM = 2**15
"""Memory that the observation itself, and Python, may take or give back between two calls."""


class Process:
    """What calls have kept; threads run and files stay open until the test ends."""

    def __init__(self, ending: ExitStack) -> None:
        self.kept: list[Any] = []
        self._ending = ending
        self._ended = threading.Event()

    def allocate(self, size: int) -> None:
        self.kept.append(bytearray(size))

    def make_objects(self, count: int) -> None:
        self.kept.append([object() for _ in range(count)])

    def open_file(self) -> None:
        self._ending.callback(os.close, os.open(os.devnull, os.O_RDONLY))

    def start_thread(self) -> None:
        thread = threading.Thread(target=self._ended.wait)
        thread.start()
        self._ending.callback(thread.join)
        self._ending.callback(self._ended.set)


@pytest.fixture
def process() -> Iterator[Process]:
    with ExitStack() as ending:
        yield Process(ending)


def faults_of(keep: Callable[[int], object], device: FakeDevice | None = None) -> dict[str, str]:
    """What is found of a scenario whose n-th call keeps something."""
    calls = 0

    def draw(**_: Any) -> Any:
        nonlocal calls
        calls += 1
        keep(calls)
        return IMAGES

    return observe(fake_scenario(draw), device or FakeDevice()).faults


LEFT: dict[str, tuple[Callable[[Process], object], str | None, str]] = {
    "a bytearray": (lambda p: p.allocate(10 * MIB), MEMORY, "(9.9|10.0). MiB in use"),
    "the least memory": (lambda p: p.allocate(LEAST_BYTES + ROOM), MEMORY, "0.0. MiB in use"),
    "small objects": (lambda p: p.make_objects(1000), OBJECTS, "1,0.. small Python objects alive"),
    "a file": (Process.open_file, FILES, "1 file open"),
    "a thread": (Process.start_thread, THREADS, "1 thread running"),
    "little memory": (lambda p: p.allocate(LEAST_BYTES - ROOM), None, ""),
    "few objects": (lambda p: p.make_objects(100), None, ""),
    "nothing": (lambda p: None, None, ""),
}


@pytest.mark.parametrize("what", LEFT)
def test_what_every_call_leaves_is_a_fault_with_its_own_sentence(
    what: str, process: Process
) -> None:
    keep, kind, words = LEFT[what]
    faults = faults_of(lambda number: keep(process))
    assert set(faults) == ({kind} - {None})
    if kind is not None:
        assert re.fullmatch(f"each further call leaves {words}", faults[kind])


@pytest.mark.parametrize("calls", [1, 2, 4, 6])
def test_what_stops_is_no_growth(calls: int, process: Process) -> None:
    """A cache that fills, a pool of threads that starts: in the observed call or in a later one."""

    def keep(number: int) -> None:
        if number <= calls:
            process.allocate(MIB)
            process.open_file()

    assert faults_of(keep) == {}


def test_a_simulated_call_is_asked_for_files_and_threads_alone(process: Process) -> None:
    def keep(number: int) -> None:
        process.allocate(MIB)
        process.open_file()

    device = FakeDevice(lacks={"torch's Python": "it is the simulation's"})
    assert faults_of(keep, device).keys() == {FILES}


def test_where_the_c_library_does_not_count_its_memory_nothing_is_said_of_it(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth, "_mallinfo2", lambda: None)
    assert faults_of(lambda number: process.allocate(10 * MIB)) == {}


def test_what_is_said_and_kept_by_whoever_listens_is_not_the_call_s() -> None:
    logger, kept = logging.getLogger("tests.growth"), list[logging.LogRecord]()
    handler = logging.Handler()
    handler.addFilter(lambda record: bool(kept.append(record)))  # type: ignore[func-returns-value]
    logger.addHandler(handler)

    def call() -> None:
        for number in range(300):
            logger.warning("step %d", number)
            warnings.warn(f"step {number}", UserWarning, stacklevel=1)

    try:
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            assert growth.GrowthCheck(simulated=False).sentences(call) == {}
        logger.warning("afterwards")
        assert [record.getMessage() for record in kept] == ["afterwards"]
    finally:
        logger.removeHandler(handler)
