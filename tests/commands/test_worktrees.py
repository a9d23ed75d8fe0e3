"""Worktrees of one checkout, several at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fixtures.commands.worktrees import add_worktree, git, is_whole, remove_worktree
from tests.support.tiny_package import TinyPackage


def test_worktrees_are_added_and_removed_at_the_same_time(tmp_path: Path) -> None:
    """git removes its folder of worktrees with the last one, also under one being added."""
    package = TinyPackage(tmp_path / "tiny")
    package.commit("one change")

    def add_and_remove(number: int) -> None:
        place = tmp_path / f"slot-{number}"
        for _ in range(25):
            add_worktree(package.folder, place, "HEAD")
            assert is_whole(place)
            remove_worktree(package.folder, place)
            assert not place.exists()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(add_and_remove, range(3)))
    assert len(git(package.folder, "worktree", "list").splitlines()) == 1
