"""What lies between good and bad: releases in order, commits in worktrees that do not stay."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from fixtures.commands.bisect.candidates import commits_in, pip_index, releases_between
from fixtures.commands.checkout import commits_between
from fixtures.commands.errors import CommandError
from tests.support.tiny_package import TinyPackage

PRINTED = """diffusers (0.42.1)
Available versions: 0.42.1, 0.42.0, 0.41.0, 0.41.0rc1, 0.36.0, 0.4.0
  INSTALLED: 0.42.1
"""


@pytest.mark.parametrize(
    ("good", "bad", "names"),
    [
        ("0.4.0", "0.42.0", ["0.4.0", "0.36.0", "0.41.0", "0.42.0"]),
        ("0.41.0rc1", "0.41.0", ["0.41.0rc1", "0.41.0"]),
        ("0.42.0", "0.36.0", ["0.42.0", "0.41.0", "0.36.0"]),
    ],
)
def test_releases_are_in_order_and_pre_releases_left_out_unless_named(
    good: str, bad: str, names: list[str]
) -> None:
    row = releases_between("diffusers", good, bad, lambda package: PRINTED)
    assert [candidate.title for candidate in row] == names
    assert row[0].install() == f"diffusers=={good}"


@pytest.mark.parametrize(
    ("good", "bad", "words"),
    [
        ("0.36.0", "0.36.0", "not two versions"),
        ("0.36.0", "newest", "not two versions"),
        ("0.35.0", "0.36.0", "diffusers 0.35.0 is not a release; the newest are 0.42.1"),
    ],
)
def test_ends_that_are_not_releases_are_refused(good: str, bad: str, words: str) -> None:
    with pytest.raises(CommandError, match=words):
        releases_between("diffusers", good, bad, lambda package: PRINTED)


def test_an_index_without_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: Any, **_: Any) -> Any:
        assert command[-3:] == ["index", "versions", "difusers"]
        return subprocess.CompletedProcess(command, 1, "", "ERROR: No matching distribution\n")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(CommandError, match="lists no versions of difusers: ERROR: No matching"):
        pip_index("difusers")


def test_the_good_commit_and_the_tested_one_are_checked_out_beside_each_other(
    tmp_path: Path,
) -> None:
    package = TinyPackage(tmp_path / "tiny")
    for number in range(3):
        package.commit(f"change {number}")
    commits = commits_between(package.folder, "HEAD~2", "HEAD")
    with commits_in(commits, package.folder, tmp_path / "work") as row:
        assert row[1].title.endswith("change 1")
        places = [Path(candidate.install()) for candidate in row]
        said = [(place / "tiny.py").read_text() for place in places]
        assert places[1] == places[2]
        assert said == ["SAID = 'change 0'\n", "SAID = 'change 2'\n", "SAID = 'change 2'\n"]
    assert not any(place.exists() for place in places)
