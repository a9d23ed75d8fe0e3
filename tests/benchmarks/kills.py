"""Processes that replace baselines are killed: `python -m tests.benchmarks.kills [KILLS]`.

First before each operation on files that a commit consists of, and before each of those that undo
an interrupted one; then at random moments, half with SIGTERM and half with SIGKILL. After each kill
every file must be whole and, once the folder has been read, all of them old or all of them new.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from fixtures.records.baseline_store import BaselineStore
from fixtures.records.baselines import CODEC
from fixtures.records.replacement import WORK
from tests.support.runs import entry

KEY = "cpu"
WORKLOADS = ("one", "two", "three", "four")
STEPS = ("replace", "rename", "unlink", "rmdir", "mkdir", "open", "fsync", "write")


def commit(folder: Path, generation: int) -> None:
    """One refresh of all workloads, without measuring."""
    store = BaselineStore(folder)
    for workload in WORKLOADS:
        made = entry()
        recorded = replace(made.recorded, reason=str(generation))
        store.stage(KEY, workload, "fp32", replace(made, recorded=recorded))
    store.commit()


def generation_of(folder: Path) -> int:
    """The refresh that all files are of; 0 if there is none.

    Raises:
        AssertionError: if a file is not whole, they are of several refreshes, or something else is
            left where git would find it.
    """
    paths = [folder / KEY / f"{workload}.json" for workload in WORKLOADS]
    for path in paths:  # as they are, before anything is put back
        if path.exists():
            CODEC.read(path)
    store = BaselineStore(folder)
    entries = [store.entry(KEY, workload, "fp32") for workload in WORKLOADS]
    found = {0 if one is None else int(one.recorded.reason) for one in entries}
    if len(found) != 1:
        raise AssertionError(f"files of several refreshes: {sorted(found)}")
    there = {path for path in folder.rglob("*") if path.is_file()}
    left = [path for path in there - set(paths) if path.relative_to(folder).parts[0] != WORK]
    if left:
        raise AssertionError(f"left behind: {sorted(left)}")
    return found.pop()


def in_a_process(work: Callable[[], object]) -> int:
    """Start it; returns the process."""
    pid = os.fork()
    if pid:
        return pid
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        work()
        os._exit(0)
    finally:
        os._exit(1)


def was_killed(pid: int) -> bool:
    """Wait for its end.

    Raises:
        AssertionError: if it failed by itself.
    """
    _, status = os.waitpid(pid, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise AssertionError("the process failed before it was killed")
    return os.WIFSIGNALED(status)


def dying_at(call: int, work: Callable[[], object]) -> Callable[[], object]:
    """The work, killed before so many operations on files have been done."""

    def run() -> None:
        left = call

        def counted(function: Callable[..., Any]) -> Callable[..., Any]:
            def step(*args: Any, **options: Any) -> Any:
                nonlocal left
                left -= 1
                if left <= 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*args, **options)

            return step

        for name in STEPS:
            setattr(os, name, counted(getattr(os, name)))
        work()

    return run


def at_every_step(folder: Path, told: Counter[str]) -> None:
    """Kill a commit, and then what undoes it, before each of their operations."""
    last, call = generation_of(folder), 0
    while True:
        call += 1
        generation = last + 1
        refresh = dying_at(call, partial(commit, folder, generation))
        if not was_killed(in_a_process(refresh)):
            break
        told["killed commits"] += 1
        undoing = 0
        while BaselineStore(folder).interrupted:
            undoing += 1
            read = dying_at(undoing, partial(generation_of, folder))
            told["killed while undoing"] += was_killed(in_a_process(read))
        found = generation_of(folder)
        if found not in (last, generation):
            raise AssertionError(f"refresh {generation} was killed, and the files are of {found}")
        told["old" if found == last else "new"] += 1
        last = found
    if generation_of(folder) != generation:
        raise AssertionError("a refresh that was not killed wrote nothing")


def at_random(folder: Path, kills: int, told: Counter[str]) -> None:
    """Kill a process that commits without end, at random moments."""
    moments = random.Random(kills)
    last = generation_of(folder)
    for kill in range(kills):
        out, into = os.pipe()

        def refresh(first: int = last + 1, into: int = into) -> None:
            while True:
                commit(folder, first)
                os.write(into, b".")
                first += 1

        pid = in_a_process(refresh)
        os.close(into)
        os.read(out, 1)
        start_s = time.monotonic()
        os.read(out, 1)
        time.sleep(moments.uniform(0, time.monotonic() - start_s))
        os.kill(pid, signal.SIGTERM if kill % 2 else signal.SIGKILL)
        was_killed(pid)
        with open(out, "rb") as pipe:  # noqa: PTH123 - a descriptor
            done = last + 2 + len(pipe.read())
        told["had to be undone"] += BaselineStore(folder).interrupted
        last = generation_of(folder)
        if last not in (done, done + 1):
            raise AssertionError(f"refresh {done} had ended, and the files are of {last}")
        told["random kills"] += 1
        told["old" if last == done else "new"] += 1


def main(kills: int = 200) -> None:
    """Kill so many, and say what became of the files."""
    told: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        at_every_step(Path(folder, "new"), told)  # the first of them makes the folder
        at_every_step(Path(folder, "new"), told)
        at_random(Path(folder, "new"), kills, told)
    print(", ".join(f"{count} {what}" for what, count in told.items()))


if __name__ == "__main__":
    main(*(int(one) for one in sys.argv[1:]))
