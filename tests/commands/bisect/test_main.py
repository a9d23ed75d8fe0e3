"""The command: found, interrupted and continued, refused; its exit code says which."""

from __future__ import annotations

import argparse
import contextlib
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from fixtures.commands.bisect import __main__ as command
from fixtures.commands.bisect import command_line, releases
from fixtures.commands.bisect.good_side import GoodSide
from fixtures.commands.bisect.halving import StepOutcome
from fixtures.commands.bisect.steps import Step
from fixtures.commands.compare.environments import Environments
from fixtures.commands.compare.requirements import Requirements
from fixtures.commands.errors import CommandError
from tests.support.own_catalogue import TECHNIQUE, nothing_kept

RELEASES = [f"0.{number}.0" for number in range(20, 43)]
ASKED = ["--package", "diffusers", "--good", "0.20.0", "--bad", "0.42.0", "-k", "sd15-bf16"]
ARGUMENTS = [*ASKED, "--metric", "peak_memory"]


class FakeGoodSide:
    """Releases are bad from `bad_from` on; the measurement number `killed_at` does not end."""

    def __init__(self) -> None:
        self.bad_from = 33
        self.killed_at = 99
        self.good_fails = False
        self.measured: list[str] = []
        self.extra_requirements: list[str] = []

    def test(self, name: str, candidate: Requirements) -> Step:
        if len(self.measured) == self.killed_at:
            raise KeyboardInterrupt
        if self.good_fails:
            raise CommandError("the good one cannot be measured: no")
        assert candidate.texts == [f"diffusers=={name}", *self.extra_requirements]
        self.measured.append(name)
        bad = int(name.split(".")[1]) >= self.bad_from
        outcome = StepOutcome.BAD if bad else StepOutcome.GOOD
        return Step(name, outcome, "1 MiB -> 2 MiB", "packages")


@pytest.fixture
def good(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeGoodSide:
    fake = FakeGoodSide()

    @contextlib.contextmanager
    def opened(options: argparse.Namespace, requirements: Requirements) -> Iterator[FakeGoodSide]:
        assert requirements.texts == ["diffusers==0.20.0", *fake.extra_requirements]
        yield fake

    printed = f"diffusers\nAvailable versions: {', '.join(reversed(RELEASES))}\n"
    monkeypatch.setattr(GoodSide, "opened", opened)
    monkeypatch.setattr(command_line, "BISECTIONS", tmp_path)
    monkeypatch.setattr(
        command,
        "releases_between",
        partial(releases.releases_between, index=lambda package: printed),
    )
    return fake


def test_the_release_is_found_within_the_bound_and_said(
    good: FakeGoodSide, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(ARGUMENTS) == 0
    said = capsys.readouterr().out
    assert "23 releases from 0.20.0 to 0.42.0: at most 5 to test" in said
    assert "first bad: diffusers 0.33.0 (last good: 0.32.0): 1 MiB -> 2 MiB" in said
    assert "nox -s compare -- --base diffusers==0.32.0 --head diffusers==0.33.0" in said
    assert len(good.measured) + 1 <= math.ceil(math.log2(23)) + 1


def test_the_comparison_that_is_printed_is_of_what_was_chosen(
    good: FakeGoodSide, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    own = tmp_path / "own_of_bisection.py"
    own.write_text(TECHNIQUE, encoding="utf-8")
    chosen = f"--perf-device simulated --perf-workload sd15 --perf-catalogue={own}"
    with pytest.MonkeyPatch.context() as patch, nothing_kept(patch):
        assert command.main([*ARGUMENTS, *chosen.split()]) == 0
    assert f'--head diffusers==0.33.0 {chosen} -k "sd15-bf16"' in capsys.readouterr().out


def test_interrupted_in_the_middle_the_same_command_continues(
    good: FakeGoodSide, capsys: pytest.CaptureFixture[str]
) -> None:
    good.killed_at = 3
    assert command.main(ARGUMENTS) == 130
    assert "the same command continues from here" in capsys.readouterr().err
    good.killed_at = 99
    assert command.main(ARGUMENTS) == 0
    assert capsys.readouterr().out.count("(cached from before)") == 3
    assert len(good.measured) == len(set(good.measured)) <= 5


def test_fresh_measures_all_again(good: FakeGoodSide) -> None:
    assert command.main(ARGUMENTS) == 0
    count = len(good.measured)
    assert command.main(ARGUMENTS) == 0
    assert len(good.measured) == count
    assert command.main([*ARGUMENTS, "--fresh"]) == 0
    assert len(good.measured) == 2 * count


def test_what_moves_beside_the_candidates_is_resolved_once_and_is_part_of_the_question(
    good: FakeGoodSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    pins = {"transformers>=5": "transformers==5.23.0"}
    asked: list[list[str]] = []

    def resolved(self: Environments, requirements: Requirements) -> Requirements:
        asked.append(requirements.texts)
        return requirements.resolved(pins.values())

    monkeypatch.setattr(Environments, "resolved", resolved)
    good.extra_requirements = ["transformers==5.23.0"]
    arguments = [*ARGUMENTS, "--with", "transformers>=5"]
    assert command.main(arguments) == 0
    assert asked == [["transformers>=5"]]
    count = len(good.measured)
    assert command.main(arguments) == 0
    assert len(good.measured) == count, "the same question"
    pins["transformers>=5"] = "transformers==5.24.0"
    good.extra_requirements = ["transformers==5.24.0"]
    assert command.main(arguments) == 0
    assert len(good.measured) == 2 * count, "another question"


@pytest.mark.parametrize("word", ['"transformers', "it's", "transformers=5"])
def test_company_that_cannot_be_read_is_one_sentence(
    good: FakeGoodSide, capsys: pytest.CaptureFixture[str], word: str
) -> None:
    assert command.main([*ARGUMENTS, "--with", word]) == 2
    said = capsys.readouterr().err
    assert said.startswith("bisect: ")
    assert said.count("\n") == 1
    assert good.measured == []


@pytest.mark.parametrize(
    "content", [b"", b"{", b"null", b'{"steps": null}', b'{"steps": [{"candidate": 1}]}', b"\xff"]
)
def test_broken_steps_are_measured_again(
    good: FakeGoodSide, tmp_path: Path, content: bytes
) -> None:
    assert command.main(ARGUMENTS) == 0
    count = len(good.measured)
    (cached,) = tmp_path.glob("*.json")
    cached.write_bytes(content)
    assert command.main(ARGUMENTS) == 0
    assert len(good.measured) == 2 * count


def test_a_folder_in_the_place_of_the_steps_is_one_sentence(
    good: FakeGoodSide, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(ARGUMENTS) == 0
    (cached,) = tmp_path.glob("*.json")
    cached.unlink()
    cached.mkdir()
    for extra in ([], ["--fresh"]):
        capsys.readouterr()
        assert command.main([*ARGUMENTS, *extra]) == 2
        said = capsys.readouterr().err
        assert f"bisect: {cached} cannot be written (" in said
        assert said.count("\n") == 1


def test_a_branch_that_moved_is_another_question(tmp_path: Path) -> None:
    """Steps that were compared with the commit that it was are not taken for those of another."""
    options = command_line.parsed(["--checkout", ".", "--good", "main", *ARGUMENTS[4:]], "")
    paths = {command_line.step_cache(options, good=commit).path for commit in ("a", "b", "a")}
    assert len(paths) == 2


def test_nothing_found_is_said_with_its_own_code(
    good: FakeGoodSide, capsys: pytest.CaptureFixture[str]
) -> None:
    good.bad_from = 99
    assert command.main(ARGUMENTS) == 1
    assert "the last one is as good as the first" in capsys.readouterr().err


def test_what_cannot_continue_is_one_sentence(
    good: FakeGoodSide, capsys: pytest.CaptureFixture[str]
) -> None:
    good.good_fails = True
    assert command.main(ARGUMENTS) == 2
    assert capsys.readouterr().err == "bisect: the good one cannot be measured: no\n"
    assert command.main([*ARGUMENTS, "--bad", "9.9.9"]) == 2
    assert "diffusers 9.9.9 is not a release" in capsys.readouterr().err
    gone = ["--checkout", "gone", *ARGUMENTS[2:]]
    assert command.main(gone) == 2
    assert "bisect: git rev-parse" in capsys.readouterr().err
