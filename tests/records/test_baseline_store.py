"""The folder of baselines: what was staged is checked, and each file is written whole."""

from __future__ import annotations

import os
import re
import signal
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import given, settings

from fixtures.records import baseline_store
from fixtures.records.baseline_store import LOCK, BaselineStore
from fixtures.records.baselines import BaselineError, Entry
from tests.records.strategies import of_type
from tests.support.counting import counts
from tests.support.runs import entry, latency

WIDE = settings(max_examples=15, deadline=None, derandomize=True, database=None)
KEY, WORKLOAD = "cpu", "storybook"
OTHER = {"latency": (latency((0.7,)),)}
ENTRIES = of_type(Entry)


def store_with(folder: Path, **entries: Entry) -> BaselineStore:
    """A store whose file on disk holds these entries."""
    store = BaselineStore(folder)
    for name, new in entries.items():
        store.stage(KEY, WORKLOAD, name, new)
    store.commit()
    return store


def tree(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder, hidden files included: contents of files, None for folders."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if path.name != LOCK
    }


def text_of(path: Path, name: str) -> str:
    """The text of one entry as it stands in the file."""
    _, start, rest = path.read_text(encoding="utf-8").partition(f'\n  "{name}": {{')
    assert start
    return rest.partition("\n  }")[0]


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A sound file."""
    store_with(tmp_path, fp32=entry(ssim=None), fp16=entry())
    return tmp_path / KEY / f"{WORKLOAD}.json"


# What is read again


@WIDE
@given(old=ENTRIES, new=ENTRIES, newer=ENTRIES)
def test_an_unchanged_entry_stays_as_it_is_to_the_byte(
    old: Entry, new: Entry, newer: Entry
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = store_with(Path(folder), old=old, other=new)
        path = store.path(KEY, WORKLOAD)
        before = text_of(path, "old")
        store.stage(KEY, WORKLOAD, "other", newer)
        store.commit()
        assert text_of(path, "old") == before


def test_a_new_entry_is_seen_after_the_commit_and_not_before(stored: Path) -> None:
    store = BaselineStore(stored.parent.parent)
    store.stage(KEY, WORKLOAD, "bf16", entry())
    assert store.entry(KEY, WORKLOAD, "bf16") is None
    assert store.commit() == [stored]
    assert store.entry(KEY, WORKLOAD, "bf16") == entry()
    assert store.commit() == []
    assert store.entry(KEY, "another", "bf16") is None


# With another store beneath


def test_entries_stand_on_those_of_the_store_beneath_which_is_never_written(tmp_path: Path) -> None:
    ours, mine = entry(), entry(**OTHER)
    beneath = store_with(tmp_path / "ours", fp32=ours, fp16=ours)
    before = tree(tmp_path / "ours")
    store = BaselineStore(tmp_path / "mine", beneath=beneath)
    assert store.knows(KEY)
    assert not store.knows("another")
    assert store.entry(KEY, WORKLOAD, "fp32") == ours
    for name in ("fp32", "own"):
        store.stage(KEY, WORKLOAD, name, mine)
    store.commit()
    assert tree(tmp_path / "ours") == before
    alone = BaselineStore(tmp_path / "mine")
    assert alone.entry(KEY, WORKLOAD, "fp16") is None
    for name in ("fp32", "own"):
        assert store.entry(KEY, WORKLOAD, name) == alone.entry(KEY, WORKLOAD, name) == mine
    assert store.entry(KEY, WORKLOAD, "fp16") == beneath.entry(KEY, WORKLOAD, "fp16")
    assert store.entry(KEY, WORKLOAD, "unknown") is None


# From one process to another


def test_what_another_process_staged_is_staged_here_and_twice_the_same_is_once(
    tmp_path: Path,
) -> None:
    there, store = BaselineStore(tmp_path / "there"), BaselineStore(tmp_path)
    there.stage(KEY, WORKLOAD, "fp16", entry())
    for _ in range(2):
        store.stage_all(there.staged)
    assert store.staged == there.staged
    store.commit()
    assert store.entry(KEY, WORKLOAD, "fp16") == entry()
    assert not there.folder.exists()


def test_two_processes_that_staged_different_figures_are_refused(tmp_path: Path) -> None:
    store, other = BaselineStore(tmp_path), BaselineStore(tmp_path)
    store.stage(KEY, WORKLOAD, "fp16", entry())
    other.stage(KEY, WORKLOAD, "fp16", entry(counts=counts(mm=1001, add=400)))
    with pytest.raises(BaselineError) as caught:
        store.stage_all(other.staged)
    assert str(caught.value) == (
        "storybook-fp16 was recorded twice with different figures; nothing was changed: refresh it "
        "without -n."
    )


# Writing


def failing_at(call: int, function: Callable[..., Any], error: BaseException) -> Callable[..., Any]:
    """The function as it is, but for one call: it fails before it does anything."""
    calls: list[object] = []

    def failing(*args: Any, **options: Any) -> Any:
        calls.append(args)
        if len(calls) == call:
            raise error
        return function(*args, **options)

    return failing


DISK_FULL = OSError(28, "No space left on device")
READ_ONLY = OSError(30, "Read-only file system")


NEW = ((KEY, "one"), (KEY, "two"), (KEY, "three"), ("new-device", "zero"))


def old_and_new(folder: Path) -> BaselineStore:
    """A store of three files on disk, with new entries staged for them and for a fourth."""
    store = BaselineStore(folder)
    for key, workload in NEW[:3]:
        store.stage(key, workload, "fp32", entry())
    store.commit()
    for key, workload in NEW:
        store.stage(key, workload, "fp32", entry(**OTHER))
    return store


@pytest.mark.parametrize("error", [DISK_FULL, KeyboardInterrupt()], ids=["disk", "interrupt"])
@pytest.mark.parametrize("call", [1, 3])
@pytest.mark.parametrize(
    ("owner", "step"),
    [(Path, "open"), (os, "fsync"), (Path, "replace")],
    ids=["open", "fsync", "replace"],
)
def test_a_commit_that_fails_breaks_no_file_and_leaves_nothing_behind(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    step: str,
    call: int,
    error: BaseException,
) -> None:
    store = old_and_new(tmp_path)
    before = tree(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, failing_at(call, getattr(owner, step), error))
        with pytest.raises((BaselineError, KeyboardInterrupt)) as caught:
            store.commit()
    some_new = (step, call) == ("replace", 3)
    if isinstance(error, OSError):
        said = "2 of 4 files are new, and whole" if some_new else "nothing was changed|cannot be re"
        assert re.search(said, str(caught.value))
        assert "No space left on device" in str(caught.value)
    after = {name: content for name, content in tree(tmp_path).items() if content is not None}
    changed = {name for name, content in after.items() if content != before[name]}
    assert changed == ({"cpu/one.json", "cpu/two.json"} if some_new else set())
    store.commit()
    for key, workload in NEW:
        assert store.entry(key, workload, "fp32") == entry(**OTHER)


def killed_before(call: int, folder: Path) -> bool:
    """Kill a commit before so many operations on files; whether it came that far."""
    store = old_and_new(folder)
    pid = os.fork()
    if not pid:
        left = call

        def counted(function: Callable[..., Any]) -> Callable[..., Any]:
            def step(*args: Any, **options: Any) -> Any:
                nonlocal left
                left -= 1
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*args, **options)

            return step

        for name in ("open", "fsync", "replace", "unlink", "mkdir"):
            setattr(os, name, counted(getattr(os, name)))
        store.commit()
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


@pytest.mark.long
def test_a_refresh_killed_at_any_step_leaves_each_file_old_or_new(tmp_path: Path) -> None:
    states, call = set(), 1
    while killed_before(call, folder := tmp_path / str(call)):
        reread = BaselineStore(folder)
        states.add(tuple(reread.entry(*names, "fp32") == entry(**OTHER) for names in NEW))
        assert all(reread.entry(*names, "fp32") for names in NEW[:3])
        old_and_new(folder).commit()  # nothing is in the way of the next one
        call += 1
    # The kills came before, between and after the replacements.
    assert states == {(True,) * count + (False,) * (len(NEW) - count) for count in range(5)}


@pytest.mark.parametrize("broken", [b"{", b"", b'{"schema": 1}'])
def test_a_spoilt_file_is_not_overwritten_by_a_refresh(stored: Path, broken: bytes) -> None:
    stored.write_bytes(broken)
    store = BaselineStore(stored.parent.parent)
    store.stage(KEY, WORKLOAD, "fp16", entry())
    store.stage(KEY, "another", "fp16", entry())
    with pytest.raises(BaselineError, match=r"storybook\.json (is|has)"):
        store.commit()
    assert tree(stored.parent) == {stored.name: broken}
    # The remedy that the sentence offers.
    stored.unlink()
    store.commit()
    assert store.entry(KEY, WORKLOAD, "fp16") == entry()


def test_what_could_not_be_read_again_is_never_written(stored: Path) -> None:
    folder = stored.parent.parent
    before = tree(folder)
    store = BaselineStore(folder)
    store.stage(KEY, WORKLOAD, "bf16", entry())
    store.stage(KEY, WORKLOAD, "fp16", entry(ssim=float("nan")))
    with pytest.raises(BaselineError) as caught:
        store.commit()
    assert "at scenarios.fp16.ssim: " in str(caught.value)
    assert "nothing was changed" in str(caught.value)
    assert tree(folder) == before


# Before anything is measured


def test_a_check_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "there" / KEY).mkdir(parents=True)
    before = tree(tmp_path)
    for name in ("new", "there"):
        BaselineStore(tmp_path / name).check_writable(KEY)
    assert tree(tmp_path) == before


def test_a_read_only_folder_is_refused_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root can write to every folder, so the system's refusal is simulated.
    failing = failing_at(1, tempfile.TemporaryFile, READ_ONLY)
    monkeypatch.setattr(tempfile, "TemporaryFile", failing)
    with pytest.raises(BaselineError) as caught:
        BaselineStore(tmp_path).check_writable(KEY)
    assert str(caught.value) == (
        f"Baselines folder {tmp_path / KEY} cannot be written (Read-only file system): make it "
        "writable, or give another one with --perf-baselines DIR."
    )


# Other refreshes


def test_refreshes_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    """Each has read what was there before any of them wrote."""
    stores = {f"technique{number}": BaselineStore(tmp_path) for number in range(12)}
    for name, store in stores.items():
        for workload in ("one", "two"):
            assert store.entry(KEY, workload, name) is None
            store.stage(KEY, workload, name, entry())
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(BaselineStore.commit, stores.values()))
    for workload in ("one", "two"):
        baseline = BaselineStore(tmp_path).baseline(KEY, workload)
        assert baseline is not None
        assert baseline.scenarios.keys() == stores.keys()


def test_a_refresh_that_never_ends_is_not_waited_for_for_ever(
    stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baseline_store, "WAIT_S", 0.1)
    store = BaselineStore(stored.parent.parent)
    store.stage(KEY, WORKLOAD, "fp16", entry(**OTHER))
    before = stored.read_bytes()
    with FileLock(store.folder / LOCK), pytest.raises(BaselineError) as caught:
        store.commit()
    assert "could not be acquired" in str(caught.value)
    assert "nothing was changed" in str(caught.value)
    assert stored.read_bytes() == before


# Links


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_link_stays_one_and_leads_to_the_new_baseline(
    stored: Path, what: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    link = stored.parent if what == "folder" else stored
    link.rename(elsewhere / link.name)
    link.symlink_to(elsewhere / link.name)
    store = BaselineStore(stored.parent.parent)
    store.stage(KEY, WORKLOAD, "bf16", entry(**OTHER))
    assert store.commit() == [stored]
    assert link.is_symlink()
    assert [path.name for path in elsewhere.iterdir()] == [link.name]
    reread = BaselineStore(stored.parent.parent).baseline(KEY, WORKLOAD)
    assert reread is not None
    assert reread.scenarios.keys() == {"fp32", "fp16", "bf16"}
