"""The command: found, interrupted, refused; its exit code says which."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fixtures.commands.bisect import __main__ as command
from fixtures.commands.bisect import candidates
from fixtures.commands.bisect.halving import StepOutcome
from fixtures.commands.bisect.steps import Step
from fixtures.commands.checkout import git
from fixtures.commands.compare.environments import Environments
from fixtures.commands.compare.requirements import Requirements
from fixtures.commands.errors import CommandError
from tests.support.own_catalogue import TECHNIQUE, nothing_kept
from tests.support.tiny_package import TinyPackage

RELEASES = [f"0.{number}.0" for number in range(20, 43)]
ASKED = ["-k", "sd15-bf16", "--metric", "peak_memory"]
ARGUMENTS = ["--package", "diffusers", "--good", "0.20.0", "--bad", "0.42.0", *ASKED]


class FakeGoodSide:
    """Candidates are bad from `bad_from` on; the measurement number `killed_at` does not end."""

    def __init__(self) -> None:
        self.bad_from = 33
        self.killed_at = 99
        self.skipped: set[int] = set()
        self.good_fails = False
        self.measured: list[int] = []
        self.extra_requirements: list[str] = []

    def opened(self, requirements: Requirements, *_: Any) -> FakeGoodSide:
        assert requirements.texts[1:] == self.extra_requirements
        return self

    def close(self) -> None:
        """Nothing runs."""

    def test(self, candidate: Requirements) -> Step:
        if len(self.measured) == self.killed_at:
            raise KeyboardInterrupt
        if self.good_fails:
            raise CommandError("the good one cannot be measured: no")
        assert candidate.texts[1:] == self.extra_requirements
        number = self.number(candidate.texts[0])
        self.measured.append(number)
        outcome = StepOutcome.BAD if number >= self.bad_from else StepOutcome.GOOD
        outcome = StepOutcome.SKIPPED if number in self.skipped else outcome
        return Step(outcome, "1 MiB -> 2 MiB", "packages")

    def number(self, text: str) -> int:
        """Of a release its minor version, of a checkout what its module says."""
        if "file://" in text:
            said = Path(text.partition("file://")[2], "tiny.py").read_text()
            return int(said.partition("'")[2].rstrip("'\n"))
        return int(text.split(".")[1])


@pytest.fixture
def good(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeGoodSide:
    fake = FakeGoodSide()
    printed = f"diffusers\nAvailable versions: {', '.join(reversed(RELEASES))}\n"
    releases = partial(candidates.releases_between, index=lambda package: printed)
    monkeypatch.setattr(command, "GoodSide", fake.opened)
    monkeypatch.setattr(command, "selected", lambda *asked: [])
    monkeypatch.setattr(command, "BISECTIONS", tmp_path / "bisections")
    monkeypatch.setattr(command, "releases_between", releases)
    return fake


def test_the_release_is_found_within_the_bound_and_said(
    good: FakeGoodSide, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(ARGUMENTS) == 0
    said = capsys.readouterr().out
    assert "23 releases from 0.20.0 to 0.42.0: at most 5 to test" in said
    assert "first bad: diffusers 0.33.0 (last good: 0.32.0): 1 MiB -> 2 MiB" in said
    assert "nox -s compare -- --base diffusers==0.32.0 --head diffusers==0.33.0" in said
    assert len(good.measured) <= math.ceil(math.log2(23))


def test_the_comparison_that_is_printed_is_of_what_was_chosen(
    good: FakeGoodSide, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    own = tmp_path / "own_of_bisection.py"
    own.write_text(TECHNIQUE, encoding="utf-8")
    chosen = f"--perf-device simulated --perf-workload sd15 --perf-catalogue={own}"
    with pytest.MonkeyPatch.context() as patch, nothing_kept(patch):
        assert command.main([*ARGUMENTS, *chosen.split()]) == 0
    assert f'--head diffusers==0.33.0 {chosen} -k "sd15-bf16"' in capsys.readouterr().out


@pytest.fixture
def package(tmp_path: Path) -> TinyPackage:
    """Of twelve commits, each with a number."""
    package = TinyPackage(tmp_path / "tiny")
    module = package.folder / "src" / "tiny" / "__init__.py"
    module.parent.mkdir(parents=True)
    module.write_text('__version__ = "1.0"\n')
    for number in range(12):
        package.commit(str(number))
    return package


def test_the_commit_is_found_and_the_checkout_stays_as_it_is(
    good: FakeGoodSide, package: TinyPackage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (package.folder / "mine").write_text("not committed")
    before = git(package.folder, "status", "--porcelain", "--branch")
    good.bad_from, good.killed_at = 7, 2
    arguments = ["--checkout", str(package.folder), "--good", "main~11", "--bad", "main", *ASKED]
    assert command.main(arguments) == 130
    assert "interrupted; environments are cached, figures are not" in capsys.readouterr().err
    assert len(git(package.folder, "worktree", "list").splitlines()) == 1
    good.killed_at = 99
    good.measured.clear()
    assert command.main(arguments) == 0
    said = capsys.readouterr().out
    assert "12 commits from " in said
    assert len(good.measured) == len(set(good.measured)) <= 4
    last_line = said.splitlines()[-1]
    assert last_line.startswith(f"first bad: {git(package.folder, 'rev-parse', 'main~4')[:10]} ")
    assert f" 7 (last good: {git(package.folder, 'rev-parse', 'main~5')[:10]} " in last_line
    assert git(package.folder, "status", "--porcelain", "--branch") == before
    assert len(git(package.folder, "worktree", "list").splitlines()) == 1


def test_commits_that_cannot_be_tested_are_named_together(
    good: FakeGoodSide, package: TinyPackage, capsys: pytest.CaptureFixture[str]
) -> None:
    good.bad_from, good.skipped = 7, {6, 7}
    arguments = ["--checkout", str(package.folder), "--good", "main~11", "--bad", "main", *ASKED]
    assert command.main(arguments) == 0
    untested, found = capsys.readouterr().out.splitlines()[-2:]
    assert untested.startswith("cannot be tested, and may be the first bad one as well: ")
    assert untested.endswith(" 7")
    assert found.split(" (last good: ")[0].endswith(" 8")


def test_what_moves_beside_the_candidates_is_resolved_once(
    good: FakeGoodSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def resolved(self: Environments, requirements: Requirements) -> Requirements:
        asked.append(requirements.texts)
        return requirements.resolved(["transformers==5.23.0"])

    monkeypatch.setattr(Environments, "resolved", resolved)
    good.extra_requirements = ["transformers==5.23.0"]
    assert command.main([*ARGUMENTS, "--with", "transformers>=5"]) == 0
    assert asked == [["transformers>=5"]]


def test_nothing_found_is_said_with_its_own_code(
    good: FakeGoodSide, capsys: pytest.CaptureFixture[str]
) -> None:
    good.bad_from = 99
    assert command.main(ARGUMENTS) == 1
    assert "the last one is as good as the first" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (ARGUMENTS, "the good one cannot be measured: no"),
        ([*ARGUMENTS, "--bad", "9.9.9"], "diffusers 9.9.9 is not a release"),
        (["--checkout", "gone", *ARGUMENTS[2:]], "git log "),
        ([*ARGUMENTS, "--with", '"transformers'], "cannot be read"),
    ],
)
def test_what_cannot_continue_is_one_sentence(
    good: FakeGoodSide, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    good.good_fails = True
    assert command.main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("bisect: ")
    assert words in said
    assert said.count("\n") == 1
