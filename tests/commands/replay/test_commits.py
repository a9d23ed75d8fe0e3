"""The commits of a checkout that are replayed."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.commands.errors import CommandError
from fixtures.commands.replay.commits import Commit, commits_of
from fixtures.commands.worktrees import GitError, git
from tests.support.tiny_package import TinyPackage


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    package = TinyPackage(tmp_path_factory.mktemp("replay") / "tiny")
    for number in range(5):
        package.commit(f"change {number} (#{100 + number})")
    return package.folder


@pytest.mark.parametrize(("every", "numbers"), [(1, [0, 1, 2, 3, 4]), (2, [0, 2, 4]), (3, [1, 4])])
def test_every_nth_commit_is_taken_and_the_last_one_always(
    checkout: Path, every: int, numbers: list[int]
) -> None:
    found = commits_of(checkout, "2000-01-01", "HEAD", every)
    assert [one.subject for one in found] == [f"change {n} (#{100 + n})" for n in numbers]
    assert [one.pull_request for one in found] == [str(100 + n) for n in numbers]


def test_commits_that_change_nothing_installed_are_left_out(tmp_path: Path) -> None:
    package = TinyPackage(tmp_path / "tiny")
    package.commit("first")
    who = ("-c", "user.name=T", "-c", "user.email=t@example.com")
    for name in ("src/a.py", "docs/index.md", "setup.py", "tests/test_a.py", "src/docs/b.py"):
        file = package.folder / name
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text("")
        git(package.folder, "add", ".")
        git(package.folder, *who, "commit", "--quiet", "--message", name)
    found = commits_of(package.folder, "2000-01-01", "HEAD", 1)
    assert [one.subject for one in found] == ["first", "src/a.py", "setup.py", "src/docs/b.py"]
    found = commits_of(package.folder, "2000-01-01", "HEAD", 2)
    assert [one.subject for one in found] == ["src/a.py", "src/docs/b.py"]


def test_too_few_commits_and_what_git_refuses_are_said(checkout: Path) -> None:
    with pytest.raises(
        CommandError, match="has 0 commits of its package since 2090-01-01 up to HEAD"
    ):
        commits_of(checkout, "2090-01-01", "HEAD", 1)
    with pytest.raises(CommandError, match="give an earlier --since, or a smaller --every"):
        commits_of(checkout, "2000-01-01", "HEAD", 9)
    with pytest.raises(GitError, match="nowhere"):
        commits_of(checkout, "2000-01-01", "nowhere", 1)


def test_a_commit_without_a_pull_request_has_none() -> None:
    assert (
        Commit("0" * 40, "2026-01-01T00:00:00+00:00", "Release: v0.37 (#1) post").pull_request == ""
    )
