"""Stored baselines: round trips, everything that can be wrong with a file, and writing or not."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures import baselines
from fixtures.baselines import BaselineError, BaselineStore, Entry, dump, read_baseline
from tests.records import entry

WIDE = settings(max_examples=50, deadline=None, derandomize=True, database=None)
KEY, WORKLOAD = "cpu", "storybook"

NAMES = st.text(min_size=1, max_size=12)
COUNTS = st.dictionaries(NAMES, st.integers(0, 2**53), max_size=5)
SAMPLES = st.lists(st.floats(0.01, 1e7), min_size=1, max_size=8)
RECORDED = st.fixed_dictionaries(
    {
        "date": NAMES,
        "commit": NAMES,
        "reason": NAMES,
        "software": st.dictionaries(NAMES, NAMES, max_size=4),
        "hardware": st.dictionaries(
            NAMES, st.one_of(NAMES, st.integers(-9, 9), st.lists(NAMES)), max_size=4
        ),
    }
)
ENTRIES = st.builds(
    Entry,
    recorded=RECORDED,
    latency_ms=SAMPLES.map(tuple),
    ratios=SAMPLES.map(tuple),
    peak_memory_bytes=st.dictionaries(NAMES, st.integers(1, 2**53), max_size=4),
    counters=COUNTS,
    ssim=st.none() | st.floats(-0.9, 1),
).flatmap(lambda one: st.sampled_from([one, replace(one, latency_ms=(), ratios=())]))
"""Entries with and without a clock."""


def store_with(folder: Path, **entries: Entry) -> BaselineStore:
    """A store whose file on disk holds these entries."""
    store = BaselineStore(folder)
    for name, one in entries.items():
        store.stage(KEY, WORKLOAD, name, one)
    store.commit()
    return store


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its content, hidden ones included."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def scenario_lines(path: Path, name: str) -> str:
    """The text of one entry as it stands in the file."""
    _, _, rest = path.read_text(encoding="utf-8").partition(f'\n  "{name}": {{')
    return rest.partition("\n  }")[0]


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A sound file."""
    store_with(tmp_path, fp32=entry(ssim=None), fp16=entry())
    return tmp_path / KEY / f"{WORKLOAD}.json"


def refusal(path: Path) -> str:
    """What is said about a file that cannot be used."""
    with pytest.raises(BaselineError) as caught:
        read_baseline(path, device_key=KEY, workload=WORKLOAD)
    return str(caught.value)


# Round trips


@WIDE
@given(st.dictionaries(NAMES, ENTRIES, min_size=1, max_size=3))
def test_what_is_written_is_read_again(entries: dict[str, Entry]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = store_with(Path(folder), **entries).baseline(KEY, WORKLOAD)
        assert found is not None
        assert found.entries.keys() == entries.keys()
        for name, one in entries.items():
            again = found.entries[name]
            assert dict(again.recorded) == dict(one.recorded)
            assert again.latency_ms == tuple(round(value, 3) for value in one.latency_ms)
            assert again.ratios == tuple(round(value, 5) for value in one.ratios)
            assert dict(again.peak_memory_bytes) == dict(one.peak_memory_bytes)
            assert dict(again.counters) == dict(one.counters)
            assert again.ssim == (None if one.ssim is None else round(one.ssim, 6))


@WIDE
@given(old=ENTRIES, new=ENTRIES, newer=ENTRIES)
def test_an_unchanged_entry_stays_as_it_is_to_the_byte(
    old: Entry, new: Entry, newer: Entry
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = store_with(Path(folder), old=old, other=new)
        path = store.path(KEY, WORKLOAD)
        before = scenario_lines(path, "old")
        assert before
        store.stage(KEY, WORKLOAD, "other", newer)
        store.commit()
        assert scenario_lines(path, "old") == before


def test_the_same_figures_give_the_same_bytes(tmp_path: Path) -> None:
    first = store_with(tmp_path / "a", one=entry(), two=entry()).path(KEY, WORKLOAD)
    second = store_with(tmp_path / "b", two=entry(), one=entry()).path(KEY, WORKLOAD)
    assert first.read_bytes() == second.read_bytes()


def test_a_new_entry_is_seen_after_the_commit_and_not_before(stored: Path) -> None:
    store = BaselineStore(stored.parent.parent)
    store.stage(KEY, WORKLOAD, "bf16", entry())
    assert store.entry(KEY, WORKLOAD, "bf16") is None
    assert store.commit() == [stored]
    assert store.entry(KEY, WORKLOAD, "bf16") == entry()
    assert store.commit() == []


def test_what_was_never_recorded_is_none_and_no_error(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    assert store.baseline(KEY, WORKLOAD) is None
    assert store.entry(KEY, WORKLOAD, "fp32") is None


def test_an_entry_knows_its_logarithms_its_machine_and_its_software() -> None:
    assert entry(ratios=(1.0, math.e)).log_ratios == pytest.approx([0.0, 1.0])
    assert entry().hardware["threads"] == 1
    assert entry().software["torch"] == "2.12.0"


def test_the_stored_baselines_of_this_repository_are_sound() -> None:
    folder = Path(baselines.__file__).parent.parent / "baselines"
    for path in folder.glob("*/*.json"):
        found = read_baseline(path, device_key=path.parent.name, workload=path.stem)
        document = json.loads(path.read_text(encoding="utf-8"))
        assert path.read_text(encoding="utf-8") == dump(document)
        assert found.entries


def test_a_stored_baseline_that_is_recorded_as_it_was_stays_as_it_is_to_the_byte(
    tmp_path: Path,
) -> None:
    folder = Path(baselines.__file__).parent.parent / "baselines"
    store, other = BaselineStore(folder), BaselineStore(tmp_path)
    paths = sorted(folder.glob("cpu/*.json"))
    for path in paths:
        found = store.baseline(path.parent.name, path.stem)
        assert found is not None
        for name, one in found.entries.items():
            other.stage(path.parent.name, path.stem, name, one)
    other.commit()
    assert paths
    assert files(tmp_path) == {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_an_entry_without_a_clock_and_without_pictures_is_stored(tmp_path: Path) -> None:
    untimed = entry(latency_ms=(), ratios=(), ssim=None)
    store = store_with(tmp_path, fp16=untimed, fp32=entry())
    assert BaselineStore(tmp_path).entry(KEY, WORKLOAD, "fp16") == untimed
    stored = json.loads(store.path(KEY, WORKLOAD).read_text(encoding="utf-8"))["scenarios"]["fp16"]
    assert "latency_ms" not in stored
    assert "ratio" not in stored
    assert stored["ssim"] is None
    assert untimed.log_ratios == []


# From one process to another


@WIDE
@given(st.dictionaries(NAMES, ENTRIES, min_size=1, max_size=3))
def test_what_another_process_staged_is_written_as_if_it_had_been_staged_here(
    entries: dict[str, Entry],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        here = store_with(Path(folder, "here"), **entries)
        there, store = BaselineStore(Path(folder, "there")), BaselineStore(Path(folder, "store"))
        for name, one in entries.items():
            there.stage(KEY, WORKLOAD, name, one)
        for _ in range(2):  # twice the same is once
            store.stage_json(json.loads(json.dumps(there.staged_json())))
        store.commit()
        assert files(there.folder) == {}
        assert files(store.folder) == files(here.folder)


def test_two_processes_that_staged_different_figures_are_refused(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    store.stage(KEY, WORKLOAD, "fp16", entry())
    other = BaselineStore(tmp_path)
    other.stage(KEY, WORKLOAD, "fp16", entry(counters={"aten::mm": 1001}))
    with pytest.raises(BaselineError) as caught:
        store.stage_json(other.staged_json())
    assert str(caught.value) == (
        "storybook-fp16 was recorded twice with different figures; nothing was changed: refresh it "
        "without -n."
    )


# Files that cannot be used


def _content(content: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(content) and None


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def _make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _make_huge(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(baselines.SIZE_LIMIT_BYTES + 1)


def _break_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere.json")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (Path.unlink, "cannot be read"),
        (_content(b""), "is empty"),
        (_content(b" \n\t"), "is empty"),
        (_truncate, "is not JSON"),
        (_content(b"\xff\xfe\x00"), "cannot be read"),
        (_content(b"[" * 200_000), "is not JSON"),
        (_content(b"null"), "at the file"),
        (_content(b"[]"), "at the file"),
        (_content(b"{}"), "at the file"),
        (_make_folder, "cannot be read"),
        (_make_huge, "is larger than"),
        (_break_link, "cannot be read"),
    ],
)
def test_a_file_that_is_no_baseline_is_refused_with_a_remedy(
    stored: Path, spoil: Callable[[Path], None], message: str
) -> None:
    spoil(stored)
    sentence = refusal(stored)
    assert sentence.startswith(f"Baseline {stored}")
    assert message in sentence
    assert f"git checkout -- {stored}" in sentence
    assert "nox -s refresh" in sentence
    assert len(sentence) < 1000


def _set(document: dict[str, Any], where: str, value: Any) -> None:
    *parts, last = where.split("/")
    for part in parts:
        document = document[int(part)] if isinstance(document, list) else document[part]
    key: Any = int(last) if isinstance(document, list) else last
    document[key] = value


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        ("schema", 99, "has schema 99, this suite reads 1"),
        ("schema", "1", "has schema '1'"),
        ("schema", True, "at schema"),
        ("device/key", "nvidia-h200", "was recorded on device 'nvidia-h200', not on 'cpu'"),
        ("workload", "sd15", "holds workload 'sd15', not 'storybook'"),
        ("surprise", 1, "'surprise' was unexpected"),
        ("scenarios/fp16/latency_s", {"samples": [1], "median": 1}, "'latency_s' was unexpected"),
        ("scenarios/fp16/peak_memory_mib", 1, "'peak_memory_mib' was unexpected"),
        ("scenarios/fp16/latency_ms/samples/0", -1.0, "at scenarios.fp16.latency_ms.samples.0"),
        ("scenarios/fp16/latency_ms/samples/0", 0, "at scenarios.fp16.latency_ms.samples.0"),
        ("scenarios/fp16/latency_ms/samples/0", "98", "at scenarios.fp16.latency_ms.samples.0"),
        ("scenarios/fp16/latency_ms/samples/0", True, "at scenarios.fp16.latency_ms.samples.0"),
        ("scenarios/fp16/latency_ms/samples", [], "at scenarios.fp16.latency_ms.samples"),
        ("scenarios/fp16/ratio/samples/1", -0.5, "at scenarios.fp16.ratio.samples.1"),
        ("scenarios/fp16/ratio/median", 0, "at scenarios.fp16.ratio.median"),
        ("scenarios/fp16/peak_memory_bytes/whole", -1, "fp16.peak_memory_bytes.whole"),
        ("scenarios/fp16/peak_memory_bytes/whole", 0, "fp16.peak_memory_bytes.whole"),
        ("scenarios/fp16/peak_memory_bytes/whole", 0.5, "fp16.peak_memory_bytes.whole"),
        ("scenarios/fp16/counters/aten::mm", -1, "at scenarios.fp16.counters.aten::mm"),
        ("scenarios/fp16/ssim", 1.5, "at scenarios.fp16.ssim"),
        ("scenarios/fp16/ssim", math.nan, "NaN is no measured value"),
        ("scenarios/fp16/latency_ms/samples/0", math.inf, "Infinity is no measured value"),
        ("scenarios/fp16/latency_ms/samples/0", -math.inf, "-Infinity is no measured value"),
        ("scenarios/fp16/recorded/reason", "", "at scenarios.fp16.recorded.reason"),
        ("scenarios/fp16/recorded/software/torch", 2.13, "recorded.software.torch"),
    ],
)
def test_a_wrong_value_is_refused_and_named(
    stored: Path, where: str, value: Any, message: str
) -> None:
    document = json.loads(stored.read_text(encoding="utf-8"))
    _set(document, where, value)
    stored.write_text(json.dumps(document), encoding="utf-8")
    sentence = refusal(stored)
    assert message in sentence
    assert "nox -s refresh" in sentence


def test_a_number_too_large_to_be_finite_is_refused(stored: Path) -> None:
    text = stored.read_text(encoding="utf-8")
    stored.write_text(text.replace("98.0", "1e999"), encoding="utf-8")
    assert "1e999 is no measured value" in refusal(stored)


@pytest.mark.parametrize("name", ["recorded", "peak_memory_bytes", "counters", "ssim"])
def test_a_missing_field_is_refused_and_named(stored: Path, name: str) -> None:
    document = json.loads(stored.read_text(encoding="utf-8"))
    del document["scenarios"]["fp16"][name]
    stored.write_text(json.dumps(document), encoding="utf-8")
    assert f"'{name}' is a required property" in refusal(stored)


@pytest.mark.parametrize(("name", "other"), [("latency_ms", "ratio"), ("ratio", "latency_ms")])
def test_a_latency_without_its_ratio_is_refused(stored: Path, name: str, other: str) -> None:
    document = json.loads(stored.read_text(encoding="utf-8"))
    del document["scenarios"]["fp16"][name]
    stored.write_text(json.dumps(document), encoding="utf-8")
    assert f"'{name}' is a dependency of '{other}'" in refusal(stored)


@WIDE
@given(cut=st.integers(0, 3000))
def test_no_truncation_is_taken_for_a_baseline(cut: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = store_with(Path(folder), fp16=entry()).path(KEY, WORKLOAD)
        whole = path.read_bytes().rstrip()
        path.write_bytes(whole[: cut % len(whole)])
        refusal(path)


def test_a_spoilt_file_is_not_overwritten_by_a_refresh(stored: Path) -> None:
    stored.write_bytes(b"{")
    store = BaselineStore(stored.parent.parent)
    store.stage(KEY, WORKLOAD, "fp16", entry())
    with pytest.raises(BaselineError, match="is not JSON"):
        store.commit()
    assert stored.read_bytes() == b"{"


# Writing, all or nothing


def _replace_second(module: Any, error: BaseException) -> Callable[..., Any]:
    """The function as it is at first, and failing from the second call on."""
    calls: list[object] = []

    def failing(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        if len(calls) == 2:
            raise error
        return module(*args, **kwargs)

    return failing


def _always(error: BaseException) -> Callable[..., Any]:
    def failing(*_: Any, **__: Any) -> Any:
        raise error

    return failing


DISK_FULL = OSError(28, "No space left on device")
READ_ONLY = OSError(30, "Read-only file system")


@pytest.mark.parametrize("error", [DISK_FULL, KeyboardInterrupt()], ids=["disk", "interrupt"])
@pytest.mark.parametrize("when", ["first", "second"])
@pytest.mark.parametrize(
    ("owner", "step"),
    [(Path, "open"), (os, "fsync"), (Path, "replace"), (Path, "mkdir"), (Path, "read_bytes")],
    ids=["open", "fsync", "replace", "mkdir", "read"],
)
def test_a_commit_that_fails_anywhere_changes_nothing_and_leaves_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    step: str,
    when: str,
    error: BaseException,
) -> None:
    store = BaselineStore(tmp_path)
    for workload in ("one", "two"):
        store.stage(KEY, workload, "fp32", entry())
    store.commit()
    before = files(tmp_path)
    for workload in ("one", "two", "three"):
        store.stage(KEY, workload, "fp32", entry(latency_ms=(7.0,)))
    for workload in ("one", "two"):
        store.baseline(KEY, workload)  # read before the disk begins to fail
    original = getattr(owner, step)
    failing = _always(error) if when == "first" else _replace_second(original, error)
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, failing)
        with pytest.raises((BaselineError, KeyboardInterrupt)) as caught:
            store.commit()
    assert files(tmp_path) == before
    if isinstance(error, OSError):
        assert "No space left on device" in str(caught.value)
        assert "nothing was changed" in str(caught.value)
    store.commit()
    found = store.entry(KEY, "three", "fp32")
    assert found is not None
    assert found.latency_ms == (7.0,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ssim": math.nan}, "no finite number"),
        ({"latency_ms": (math.inf,)}, "no finite number"),
        ({"latency_ms": (0.0001,)}, "latency_ms"),  # rounds to zero
        ({"ratios": (-1.0,)}, "ratio"),
        ({"peak_memory_bytes": {"whole": 0}}, "peak_memory_bytes.whole"),
        ({"counters": {"aten::mm": -1}}, "counters.aten::mm"),
        ({"ssim": 2.0}, "ssim"),
    ],
)
def test_what_could_not_be_read_again_is_never_written(
    stored: Path, changes: dict[str, Any], message: str
) -> None:
    folder = stored.parent.parent
    before = files(folder)
    store = BaselineStore(folder)
    store.stage(KEY, WORKLOAD, "bf16", entry())
    store.stage(KEY, WORKLOAD, "fp16", entry(**changes))
    with pytest.raises(BaselineError, match=message):
        store.commit()
    assert files(folder) == before


def test_a_read_only_folder_is_refused_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As root every folder can be written, so the system's refusal is played.
    monkeypatch.setattr(tempfile, "TemporaryFile", _always(READ_ONLY))
    with pytest.raises(BaselineError) as caught:
        BaselineStore(tmp_path).check_writable(KEY)
    assert str(caught.value) == (
        f"Baselines folder {tmp_path / KEY} cannot be written (Read-only file system): make it "
        "writable, or give another one with --perf-baselines DIR."
    )


def test_a_file_in_the_way_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / KEY).write_text("in the way", encoding="utf-8")
    with pytest.raises(BaselineError, match="cannot be written"):
        BaselineStore(tmp_path).check_writable(KEY)


def test_a_folder_that_can_be_written_is_left_empty(tmp_path: Path) -> None:
    BaselineStore(tmp_path / "new").check_writable(KEY)
    assert files(tmp_path) == {}
