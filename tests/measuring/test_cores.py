"""Cores that pairs of processes have for themselves."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

import pytest

from fixtures.measuring.cores import Cores, separate_cores


@pytest.mark.parametrize(
    ("siblings", "allowed", "separate"),
    [
        ({0: "0", 1: "1"}, {0, 1}, [0, 1]),
        ({0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}, {0, 1, 2, 3}, [0, 1]),
        ({0: "0-1", 1: "0-1"}, {0, 1}, [0]),
        ({0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}, {2, 3}, [2, 3]),
        ({}, {0, 5}, [0, 5]),
    ],
    ids=["two cores", "two threads each", "threads of one core", "not all", "nothing told"],
)
def test_of_the_threads_of_a_core_one_is_taken_if_this_process_may_use_it(
    siblings: dict[int, str],
    allowed: set[int],
    separate: list[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for processor, text in siblings.items():
        folder = tmp_path / f"cpu{processor}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{text}\n")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: allowed, raising=False)
    assert separate_cores(tmp_path) == separate


def test_where_processes_cannot_be_pinned_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert separate_cores() == []


def test_no_two_have_the_same_core_and_one_that_fails_gives_it_back() -> None:
    cores, lock = Cores([3, 7]), Lock()
    in_use: list[int] = []

    def use(number: int) -> None:
        with cores.taken() as core:
            with lock:
                assert core not in in_use
                in_use.append(core)
            with lock:
                in_use.remove(core)
            if number % 2:
                raise ZeroDivisionError

    with ThreadPoolExecutor(4) as pool:
        used = [pool.submit(use, number) for number in range(40)]
    assert [type(each.exception()) for each in used] == [type(None), ZeroDivisionError] * 20
    with cores.taken() as one, cores.taken() as other:
        assert {one, other} == {3, 7}
