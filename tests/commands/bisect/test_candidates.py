"""What lies between good and bad: releases in order, commits of first parents."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from fixtures.commands.bisect import __main__ as command
from fixtures.commands.bisect.__main__ import commits_between, git, releases_between
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
    good: str, bad: str, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_pip_index", lambda package: PRINTED)
    row = releases_between("diffusers", good, bad)
    assert [candidate.title for candidate in row] == [f"diffusers {name}" for name in names]
    assert row[0].source.text == f"diffusers=={good}"


@pytest.mark.parametrize(
    ("good", "bad", "words"),
    [
        ("0.36.0", "0.36.0", "not two versions"),
        ("0.36.0", "newest", "not two versions"),
        ("0.35.0", "0.36.0", "diffusers 0.35.0 is not a release; the newest are 0.42.1"),
    ],
)
def test_ends_that_are_not_releases_are_refused(
    good: str, bad: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_pip_index", lambda package: PRINTED)
    with pytest.raises(CommandError, match=words):
        releases_between("diffusers", good, bad)


def test_an_index_without_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: Any, **_: Any) -> Any:
        assert command[-3:] == ("index", "versions", "difusers")
        return subprocess.CompletedProcess(command, 1, "", "ERROR: No matching distribution\n")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(CommandError, match="lists no versions of difusers: ERROR: No matching"):
        releases_between("difusers", "0.1.0", "0.2.0")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> TinyPackage:
    """Five changes on main, and one of a branch beside the last two of them."""
    package = TinyPackage(tmp_path_factory.mktemp("checkout") / "tiny")
    with pytest.MonkeyPatch.context() as patch:

        def change(number: int, subject: str, second: int) -> None:
            patch.setenv("GIT_COMMITTER_DATE", f"2026-01-01T00:00:{second:02d}Z")
            package.commit(f"{subject} {number}", version=f"1.{number}")

        for number in range(3):
            change(number, "change", number)
        git(package.folder, "tag", "parting")
        git(package.folder, "checkout", "--quiet", "-b", "release")
        change(9, "fix", 3)
        git(package.folder, "checkout", "--quiet", "main")
        for number in (3, 4):
            change(number, "change", number + 1)
    return package


@pytest.mark.parametrize(
    ("good", "bad", "numbers"),
    [
        ("main~4", "main", "01234"),
        ("main~1", "main", "34"),
        ("main", "main~2", "432"),
        ("release", "main", "9234"),
        ("main", "release", "4329"),
        ("parting", "release", "29"),
    ],
)
def test_commits_lie_between_two_revisions_in_the_order_that_they_are_named(
    package: TinyPackage, good: str, bad: str, numbers: str
) -> None:
    row = commits_between(package.folder, good, bad)
    assert "".join(candidate.title[-1] for candidate in row) == numbers
    for candidate in row:
        name, date, subject = candidate.title.split(" ", 2)
        assert (len(name), date) == (10, "2026-01-01")
        commit = git(package.folder, "rev-parse", name).strip()
        assert candidate.source.text == f"tiny @ git+{package.folder.as_uri()}@{commit}"
        assert str(candidate.source.version) == f"1.{subject[-1]}"


@pytest.mark.parametrize(
    ("good", "bad", "words"),
    [
        ("nowhere", "HEAD", "nowhere"),
        ("HEAD", "nowhere", "nowhere"),
        ("main", "HEAD", "main and HEAD are one commit; give two"),
    ],
)
def test_commits_that_are_not_two_are_refused(
    package: TinyPackage, good: str, bad: str, words: str
) -> None:
    with pytest.raises(CommandError, match=words):
        commits_between(package.folder, good, bad)


def test_what_is_no_checkout_is_said(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"git log .* in .*not a git repository"):
        commits_between(tmp_path, "main~1", "main")
