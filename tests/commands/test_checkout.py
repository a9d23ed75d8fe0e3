"""A checkout's commits in order, and worktrees of them; nothing in the checkout changes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fixtures.commands.checkout import (
    Commit,
    GitError,
    check_out,
    commits_between,
    git,
    remove_worktree,
)
from tests.support.tiny_package import TinyPackage


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> TinyPackage:
    """Five changes on main, one of a branch beside the last two of them, and a file of a user's."""
    package = TinyPackage(tmp_path_factory.mktemp("checkout") / "tiny")
    with pytest.MonkeyPatch.context() as patch:

        def change(number: int, subject: str, second: int) -> None:
            patch.setenv("GIT_COMMITTER_DATE", f"2026-01-01T00:00:{second:02d}Z")
            package.commit(f"{subject} {number} (#{100 + number})")

        for number in range(3):
            change(number, "change", number)
        git(package.folder, "tag", "parting")
        git(package.folder, "checkout", "--quiet", "-b", "release")
        change(9, "fix", 3)
        git(package.folder, "checkout", "--quiet", "main")
        for number in (3, 4):
            change(number, "change", number + 1)
    (package.folder / "mine").write_text("not committed")
    return package


def subjects(commits: list[Commit]) -> str:
    """The numbers in the subjects."""
    return "".join(commit.subject.split()[1] for commit in commits)


def test_a_revision_that_git_does_not_know_is_said(package: TinyPackage) -> None:
    for revisions in (("nowhere", "HEAD"), ("HEAD", "nowhere")):
        with pytest.raises(GitError, match="nowhere"):
            commits_between(package.folder, *revisions)


@pytest.mark.parametrize(
    ("first", "last", "numbers"),
    [
        ("main~4", "main", "01234"),
        ("main~1", "main", "34"),
        ("main", "main~2", "432"),
        ("release", "main", "9234"),
        ("main", "release", "4329"),
        ("parting", "release", "29"),
        ("main", "main", "44"),
    ],
)
def test_commits_lie_between_two_revisions_in_the_order_that_they_are_named(
    package: TinyPackage, first: str, last: str, numbers: str
) -> None:
    assert subjects(commits_between(package.folder, first, last)) == numbers


@pytest.mark.parametrize("harm", ["none", "no .git", "odd .git", "pruned", "empty"])
def test_a_worktree_becomes_another_commit_whatever_was_left_of_it(
    package: TinyPackage, tmp_path: Path, harm: str
) -> None:
    before = git(package.folder, "status", "--porcelain", "--branch")
    place = tmp_path / "tree"
    check_out(package.folder, place, "main~2")
    (place / "built").write_text("")
    if harm == "no .git":
        (place / ".git").unlink()
    elif harm == "odd .git":
        (place / ".git").write_text("gitdir: /nowhere")
    elif harm == "pruned":
        shutil.rmtree(package.folder / ".git" / "worktrees" / "tree")
    elif harm == "empty":
        shutil.rmtree(place)
        place.mkdir()
    check_out(package.folder, place, "main~3")
    assert "change 1" in (place / "tiny.py").read_text()
    assert not (place / "built").exists()
    remove_worktree(package.folder, place)
    assert not place.exists()
    assert len(git(package.folder, "worktree", "list").splitlines()) == 1
    assert git(package.folder, "status", "--porcelain", "--branch") == before


def test_what_git_refuses_is_said(tmp_path: Path) -> None:
    with pytest.raises(GitError, match=r"git rev-parse HEAD in .*not a git repository"):
        git(tmp_path, "rev-parse", "HEAD")
