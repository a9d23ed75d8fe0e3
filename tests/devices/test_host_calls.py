"""The host's calls are counted to the call, by package and by step, and nobody else's are."""

from __future__ import annotations

import gc
import importlib
import inspect
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import safetensors.torch
import torch

from fixtures.devices.host_calls import HostCallCounter
from fixtures.devices.ledger import StorageLedger
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.records.counts import (
    EMPTY_CACHE,
    HOST_CALLS,
    MOVES,
    OPENED,
    RUNTIME,
    STANDARD_CALLS,
    SYNCHRONIZE,
    Counts,
    Row,
)

SOURCE = """
import inspect

def leaf(items):
    return len(items)

def work(times, extra=0):
    for _ in range(times):
        leaf(())
    for _ in range(extra):
        leaf(())
    return times

class Scheduler:
    def step(self):
        return None

    def loop(self, times):
        for number in range(times):
            work(3, extra=number == times - 1)
            self.step()

class Dies:
    def __del__(self):
        leaf(())

def read(path):
    with open(path, "rb"):
        pass

def signature():
    return inspect.signature(leaf)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """A package with known calls, and one beside it whose name begins with the same letters."""
    folder = tmp_path_factory.mktemp("site")
    for name in ("hostlib", "hostlib_more"):
        (folder / name / "inner").mkdir(parents=True)
        (folder / name / "__init__.py").touch()
        (folder / name / "inner" / "__init__.py").write_text(SOURCE, encoding="utf-8")
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module("hostlib.inner")
    finally:
        sys.path.remove(str(folder))


FILE = "hostlib/inner/__init__.py"


def counted(function: object, *arguments: object, step: object = None) -> Counts:
    counter = HostCallCounter(("hostlib", "torch"), step)  # type: ignore[arg-type]
    with counter:
        function(*arguments)  # type: ignore[operator]
    return counter.counts()


def runtime(function: object, *arguments: object) -> dict[str, int]:
    """Calls of the runtime, of which each has no parts."""
    seen = counted(function, *arguments)
    return {kind: seen.total(kind) for kind in RUNTIME if seen.total(kind)}


def test_functions_and_the_builtins_they_call_are_counted(library: ModuleType) -> None:
    work = counted(library.work, 7)
    # `work` once and `leaf` each time; two ranges are types, and `len` is the only builtin.
    assert work.tally == {Row(HOST_CALLS, "leaf", FILE): 2 * 7, Row(HOST_CALLS, "work", FILE): 1}
    assert work.python == "{}.{}".format(*sys.version_info)


def test_work_of_the_standard_library_counts_for_its_caller(library: ModuleType) -> None:
    seen = counted(library.signature)
    assert seen.total(HOST_CALLS) == 1
    assert seen.rows[Row(STANDARD_CALLS, "hostlib")].in_all > 20
    assert STANDARD_CALLS not in counted(library.leaf, ()).kinds


def test_other_packages_other_threads_and_the_suite_s_own_calls_are_not_counted(
    library: ModuleType,
) -> None:
    more = importlib.import_module("hostlib_more.inner")

    def mine() -> None:
        len(())
        more.work(5)
        inspect.signature(mine)
        gc.collect()
        thread = threading.Thread(target=library.work, args=(5,))
        thread.start()
        thread.join()

    assert not counted(mine)


def test_what_lies_between_the_last_two_steps_is_a_step(library: ModuleType) -> None:
    scheduler = library.Scheduler()
    work = counted(scheduler.loop, 4, step=scheduler.step)
    assert work.host_steps == 4
    # The last step has one call of `leaf` more than the others: 4, `work`, and the step before;
    # and a builtin in each `leaf`.
    assert work.step_total(HOST_CALLS) == 4 + 1 + 1 + 4
    assert work.total(HOST_CALLS) == 1 + 3 * 4 + 1 + 2 * 4 + 13
    alone = counted(scheduler.loop, 1, step=scheduler.step)
    assert (alone.host_steps, alone.step_total(HOST_CALLS)) == (1, 0)


def test_garbage_is_collected_before_and_not_meanwhile(library: ModuleType) -> None:
    def cycles() -> None:
        for _ in range(100):
            dies = library.Dies()
            dies.itself = dies

    cycles()
    thresholds = gc.get_threshold()
    gc.set_threshold(1)
    try:
        work = counted(cycles)
    finally:
        gc.set_threshold(*thresholds)
    assert not work
    gc.collect()


def test_what_was_profiling_before_goes_on_after_an_error_too() -> None:
    def profile(frame: object, event: str, arg: object) -> None:
        """Nothing to do."""

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        with pytest.raises(ZeroDivisionError):
            counted(lambda: 1 / 0)
        assert sys.getprofile() is profile
    finally:
        sys.setprofile(before)


# The runtime


def test_a_move_is_counted_whether_or_not_anything_moves() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    moves = runtime(lambda: (module.to("cpu"), module.to(torch.float64), module.cpu()))
    assert moves == {MOVES: 3}


def test_caches_and_waits_are_counted() -> None:
    def call() -> None:
        torch.cuda.empty_cache()
        torch.cuda.Stream().synchronize()
        torch.cuda.Event()
        torch.cuda.synchronize()

    with SimulatedDevice().entered():
        assert runtime(call) == {EMPTY_CACHE: 1, SYNCHRONIZE: 2}


def test_files_that_are_opened_are_counted(library: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    assert runtime(library.read, path) == {OPENED: 1}
    safetensors.torch.save_file({"a": torch.zeros(100)}, path)
    assert runtime(safetensors.torch.load_file, path) == {OPENED: 1}


def test_an_operation_that_a_library_wrote_in_python_counts_within_a_ledger_too(
    library: ModuleType,
) -> None:
    """As Quanto's, which parse a version in every product."""
    written = torch.library.Library("perf_tests", "DEF")
    written.define("twice(Tensor x) -> Tensor")
    written.impl("twice", lambda x: x * library.work(2), "CPU")
    plain = counted(torch.ops.perf_tests.twice, torch.ones(3))
    with StorageLedger() as ledger:
        work = counted(torch.ops.perf_tests.twice, torch.ones(3))
    assert sum(n for row, n in ledger.tally.items() if row.name == "perf_tests::twice") == 1
    assert work.total(HOST_CALLS) == plain.total(HOST_CALLS) == 3 + 2
