"""The command: found, interrupted, refused; its exit code says which."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any

import pytest

from fixtures.commands.bisect import __main__ as command
from fixtures.commands.bisect.__main__ import git
from fixtures.commands.bisect.steps import Step, StepOutcome
from fixtures.commands.compare.requirements import Requirements
from fixtures.commands.errors import CommandError
from fixtures.settings import Settings
from tests.support.tiny_package import TinyPackage

RELEASES = [f"0.{number}.0" for number in range(20, 43)]
ASKED = ["-k", "sd15-bf16", "--metric", "peak_memory"]
ARGUMENTS = ["--package", "diffusers", "--good", "0.20.0", "--bad", "0.42.0", *ASKED]


class FakeSides:
    """Candidates are bad from `bad_from` on; the measurement number `killed_at` does not end."""

    def __init__(self) -> None:
        self.bad_from = 33
        self.killed_at = 99
        self.skipped: set[int] = set()
        self.good_fails = False
        self.measured: list[int] = []
        self.extra_requirements: set[str] = set()

    def running(self, name: str, requirements: Requirements, settings: Settings) -> Any:
        assert self.extra_requirements <= set(requirements.texts)
        return nullcontext()

    def test(self, good: None, candidate: Requirements, *_: Any) -> Step:
        if len(self.measured) == self.killed_at:
            raise KeyboardInterrupt
        if self.good_fails:
            raise CommandError("the good one cannot be measured: no")
        assert self.extra_requirements <= set(candidate.texts)
        assert candidate.given[0].version is not None
        number = candidate.given[0].version.minor
        self.measured.append(number)
        outcome = StepOutcome.BAD if number >= self.bad_from else StepOutcome.GOOD
        outcome = StepOutcome.SKIPPED if number in self.skipped else outcome
        return Step(outcome, "1 MiB -> 2 MiB")


@pytest.fixture
def good(monkeypatch: pytest.MonkeyPatch) -> FakeSides:
    fake = FakeSides()
    printed = f"diffusers\nAvailable versions: {', '.join(reversed(RELEASES))}\n"
    monkeypatch.setattr(command, "running_side", fake.running)
    monkeypatch.setattr(command, "try_candidate", fake.test)
    monkeypatch.setattr(command, "selected", lambda *asked: [])
    monkeypatch.setattr(command, "_pip_index", lambda package: printed)
    return fake


def test_the_release_is_found_within_the_bound_and_said(
    good: FakeSides, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(ARGUMENTS) == 0
    said = capsys.readouterr().out
    assert "23 candidates from diffusers 0.20.0 to diffusers 0.42.0: at most 5 to test" in said
    assert "first bad: diffusers 0.33.0 (last good: diffusers 0.32.0): 1 MiB -> 2 MiB" in said
    assert "nox -s compare -- --base diffusers==0.32.0 --head diffusers==0.33.0" in said
    assert len(good.measured) <= math.ceil(math.log2(23))


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> TinyPackage:
    """Of twelve commits, each with a number."""
    package = TinyPackage(tmp_path_factory.mktemp("checkout") / "tiny")
    for number in range(12):
        package.commit(str(number), version=f"1.{number}")
    return package


def test_the_commit_is_found_and_said(
    good: FakeSides, package: TinyPackage, capsys: pytest.CaptureFixture[str]
) -> None:
    good.bad_from, good.killed_at = 7, 2
    arguments = ["--checkout", str(package.folder), "--good", "main~11", "--bad", "main", *ASKED]
    assert command.main(arguments) == 130
    assert "interrupted, nothing is kept" in capsys.readouterr().err
    good.killed_at = 99
    good.measured.clear()
    assert command.main(arguments) == 0
    said = capsys.readouterr().out
    assert "12 candidates from " in said
    assert len(good.measured) == len(set(good.measured)) <= 4
    (line,) = (line for line in said.splitlines() if line.startswith("first bad: "))
    bad, last_good = (git(package.folder, "rev-parse", f"main~{n}")[:10] for n in (4, 5))
    assert line.startswith(f"first bad: {bad} ")
    assert f" 7 (last good: {last_good} " in line


def test_commits_that_cannot_be_tested_are_named_together(
    good: FakeSides, package: TinyPackage, capsys: pytest.CaptureFixture[str]
) -> None:
    good.bad_from, good.skipped = 7, {6, 7}
    arguments = ["--checkout", str(package.folder), "--good", "main~11", "--bad", "main", *ASKED]
    assert command.main(arguments) == 0
    untested, first_bad, _ = capsys.readouterr().out.splitlines()[-3:]
    assert untested.startswith("cannot be tested, and may be the first bad one as well: ")
    assert untested.endswith(" 7")
    assert first_bad.split(" (last good: ")[0].endswith(" 8")


def test_other_packages_are_installed_beside_every_candidate(good: FakeSides) -> None:
    good.extra_requirements = {"transformers==5.22.0"}
    assert command.main([*ARGUMENTS, "--with", "transformers==5.22.0"]) == 0


def test_nothing_found_is_said_with_its_own_code(
    good: FakeSides, capsys: pytest.CaptureFixture[str]
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
        ([*ARGUMENTS, "--with", "transformers>=5"], "is neither a version"),
    ],
)
def test_what_cannot_continue_is_one_sentence(
    good: FakeSides, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    good.good_fails = True
    assert command.main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("bisect: ")
    assert words in said
    assert said.count("\n") == 1
