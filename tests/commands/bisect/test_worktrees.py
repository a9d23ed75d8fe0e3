"""Commits by `git bisect run`: found, continued, and nothing changed in the checkout."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fixtures.commands.bisect.worktrees import (
    CULPRIT,
    REQUEST,
    STEP_REQUEST,
    SUSPECTS,
    Worktrees,
    is_newer,
)
from fixtures.commands.worktrees import GitError, git

STEP = """
import subprocess, sys
from pathlib import Path
log = Path({log!r})
done = log.read_text().split() if log.exists() else []
if len(done) == {killed_at}:
    print("stop: the good one cannot be measured", flush=True)
    sys.exit(128)
number = int(Path("number").read_text())
log.write_text(" ".join([*done, str(number)]))
if number in {skipped}:
    print(f"step: {{number}}: skipped", flush=True)
    sys.exit(125)
print(f"step: {{number}}: figures", flush=True)
sys.exit(int(number >= {bad_from}))
"""


class StepWorktrees(Worktrees):
    """Worktrees whose step reads a number instead of measuring."""

    def prepared(self, **facts: Any) -> StepWorktrees:
        script = self.folder.parent / "step.py"
        facts = {"bad_from": 13, "skipped": (), "killed_at": 99, **facts}
        script.write_text(STEP.format(log=str(self.log), **facts))
        return self

    @property
    def log(self) -> Path:
        return self.folder.parent / "log"

    def _step(self) -> list[str]:
        return [sys.executable, str(self.folder.parent / "step.py")]


@pytest.fixture
def worktrees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StepWorktrees:
    """Of a checkout with twenty commits, each with a number."""
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    git(checkout, "init", "--quiet", "--initial-branch", "main")
    for name, value in (("user.name", "T"), ("user.email", "t@example.com")):
        git(checkout, "config", name, value)
    for number in range(20):
        (checkout / "number").write_text(str(number))
        git(checkout, "add", "number")
        monkeypatch.setenv("GIT_COMMITTER_DATE", f"2026-01-01T00:00:{number:02d}Z")
        git(checkout, "commit", "--quiet", "--message", f"number {number}")
    (checkout / "mine").write_text("not committed")
    return StepWorktrees(checkout, tmp_path / "work")


def revision(worktrees: Worktrees, number: int) -> str:
    return git(worktrees.checkout, "rev-parse", f"main~{19 - number}").strip()


def bisect(worktrees: StepWorktrees, said: list[str]) -> str:
    worktrees.prepare(revision(worktrees, 0), revision(worktrees, 19))
    return worktrees.run([], [], worktrees.folder / "cached.json", said.append)


def numbers(worktrees: StepWorktrees) -> Sequence[str]:
    return worktrees.log.read_text().split()


def test_the_first_bad_commit_is_found(worktrees: StepWorktrees) -> None:
    said: list[str] = []
    printed = bisect(worktrees.prepared(), said)
    culprit = CULPRIT.search(printed)
    assert culprit is not None
    assert culprit[1] == revision(worktrees, 13)
    assert len(said) <= 5
    assert "13: figures" in said


def test_the_commit_that_fixed_it_is_found_where_good_is_the_newer_one(
    worktrees: StepWorktrees,
) -> None:
    """Up to 12 they are bad; the step answers git in its own terms, as `git_step.py` does."""
    old, new = revision(worktrees, 0), revision(worktrees, 19)
    assert is_newer(worktrees.checkout, new, than=old)
    assert not is_newer(worktrees.checkout, old, than=new)
    worktrees.prepared().prepare(good=new, bad=old, backwards=True)
    printed = worktrees.run(
        [], [], worktrees.folder / "cached.json", lambda text: None, backwards=True
    )
    culprit = CULPRIT.search(printed)
    assert culprit is not None
    assert culprit[1] == revision(worktrees, 13)
    request = STEP_REQUEST.read(worktrees.folder / REQUEST)
    assert request.backwards
    assert request.folder == str(Path.cwd())
    assert (worktrees.good / "number").read_text() == "19"


def test_the_checkout_stays_as_it_is(worktrees: StepWorktrees) -> None:
    before = git(worktrees.checkout, "status", "--porcelain", "--branch")
    bisect(worktrees.prepared(), [])
    worktrees.remove()
    assert git(worktrees.checkout, "status", "--porcelain", "--branch") == before
    assert len(git(worktrees.checkout, "worktree", "list").splitlines()) == 1
    assert (worktrees.checkout / "number").read_text() == "19"


def test_stopped_in_the_middle_it_continues(worktrees: StepWorktrees) -> None:
    with pytest.raises(GitError, match="the good one cannot be measured"):
        bisect(worktrees.prepared(killed_at=2), [])
    again = worktrees.prepared()
    assert again.prepare(revision(worktrees, 0), revision(worktrees, 19))
    printed = again.run([], [], worktrees.folder / "cached.json", lambda text: None)
    assert revision(worktrees, 13) in printed
    assert len(numbers(worktrees)) == len(set(numbers(worktrees))) <= 5


def test_what_was_removed_starts_again(worktrees: StepWorktrees) -> None:
    with pytest.raises(GitError):
        bisect(worktrees.prepared(killed_at=2), [])
    worktrees.remove()
    assert not worktrees.prepare(revision(worktrees, 0), revision(worktrees, 19))


@pytest.mark.parametrize("name", ["good", "tested"])
@pytest.mark.parametrize("harm", ["no .git", "odd .git", "pruned", "empty"])
def test_a_broken_worktree_is_made_anew_or_removed(
    worktrees: StepWorktrees, name: str, harm: str
) -> None:
    with pytest.raises(GitError, match="the good one cannot be measured"):
        bisect(worktrees.prepared(killed_at=2), [])

    def break_it() -> None:
        place = worktrees.folder / name
        if harm == "no .git":
            (place / ".git").unlink()
        elif harm == "odd .git":
            (place / ".git").write_text("gitdir: /nowhere")
        elif harm == "pruned":
            shutil.rmtree(worktrees.checkout / ".git" / "worktrees" / name)
        else:
            shutil.rmtree(place)
            place.mkdir()

    break_it()
    printed = bisect(worktrees.prepared(), [])
    assert revision(worktrees, 13) in printed
    break_it()
    worktrees.remove()
    assert not worktrees.good.exists()
    assert not worktrees.tested.exists()
    assert len(git(worktrees.checkout, "worktree", "list").splitlines()) == 1


def test_commits_that_cannot_be_tested_are_named_together(worktrees: StepWorktrees) -> None:
    printed = bisect(worktrees.prepared(skipped=tuple(range(1, 19))), [])
    assert CULPRIT.search(printed) is None
    suspects = SUSPECTS.findall(printed)
    assert revision(worktrees, 13) in suspects
    assert len(suspects) == 19


def test_one_revision_can_be_tested_alone(worktrees: StepWorktrees) -> None:
    bisect(worktrees.prepared(), [])
    said: list[str] = []
    worktrees.test(revision(worktrees, 19), said.append)
    assert said == ["19: figures"]


def test_what_git_refuses_is_said(tmp_path: Path) -> None:
    with pytest.raises(GitError, match=r"git rev-parse HEAD in .*not a git repository"):
        git(tmp_path, "rev-parse", "HEAD")
    assert subprocess.run(["git", "--version"], capture_output=True, check=True)
