"""Whatever ends a process that replaces baselines, all files are old or all are new."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.records.replacement import WORK, Replacement
from fixtures.settings import REPOSITORY
from tests.benchmarks.kills import KEY, WORKLOADS, commit, generation_of

KILLS = 60
"""At random moments, besides those before every step; the script by itself makes 200."""


def test_a_killed_refresh_leaves_all_files_old_or_all_new() -> None:
    """In a process of its own, for it forks."""
    command = [sys.executable, "-m", "tests.benchmarks.kills", str(KILLS)]
    ended = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=300
    )
    assert ended.returncode == 0, ended.stderr
    counts = (one.split(" ", 1) for one in ended.stdout.strip().split(", "))
    told = {what: int(count) for count, what in counts}
    assert told["random kills"] == KILLS
    # Unless a kill came between the replacements, the checks have proved nothing.
    assert told["killed while undoing"] > len(WORKLOADS)


def test_the_checks_notice_files_of_two_refreshes_and_what_is_left_behind(tmp_path: Path) -> None:
    commit(tmp_path, 1)
    assert generation_of(tmp_path) == 1
    path = tmp_path / KEY / f"{WORKLOADS[0]}.json"
    old = path.read_bytes()
    commit(tmp_path, 2)
    assert generation_of(tmp_path) == 2
    new = path.read_bytes()
    path.write_bytes(old)
    with pytest.raises(AssertionError, match="of several refreshes"):
        generation_of(tmp_path)
    path.write_bytes(new)
    (path.parent / f".{path.name}.new").write_bytes(b"")
    with pytest.raises(AssertionError, match="left behind"):
        generation_of(tmp_path)


def test_git_ignores_what_is_not_in_its_place(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    files = Replacement(tmp_path / "baselines")
    with files.locked():
        files.replace({files.folder / "cpu" / "one.json": "{}"})
        (files.folder / WORK / "new").mkdir()
        (files.folder / WORK / "new" / "one.json").write_text("{}")
    listed = subprocess.run(
        ["git", "-C", str(tmp_path), "status", "--porcelain", "-uall"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert listed.stdout == "?? baselines/cpu/one.json\n"
