"""The step of `git bisect run`: what it measures, caches and tells git."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fixtures.commands.bisect import git_step
from fixtures.commands.bisect.good_side import GoodSide
from fixtures.commands.bisect.halving import StepOutcome
from fixtures.commands.bisect.steps import Step, StepCache
from fixtures.commands.bisect.worktrees import REQUEST, STEP_REQUEST, StepRequest
from fixtures.commands.compare.requirements import Requirements
from fixtures.commands.errors import CommandError
from fixtures.commands.worktrees import git

Run = Callable[..., int]
METRIC = ["-k", "x", "--metric", "latency"]
QUESTION = ["--good", "a", "--bad", "b", *METRIC, "--with", "torch"]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs the step with this outcome, for a commit of a package; git starts it elsewhere."""
    given_in = tmp_path / "given here"
    given_in.mkdir()
    for name in ("good", "tested"):
        package = tmp_path / name / "src" / "diffusers"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text('__version__ = "0.37.0.dev0"\n')
        (tmp_path / name / "setup.py").write_text("")
    tested = tmp_path / "tested"
    git(tested, "init", "--quiet")
    git(tested, "add", ".")
    who = ("-c", "user.name=T", "-c", "user.email=t@example.com")
    git(tested, *who, "commit", "--quiet", "--message", "a change")

    def step(outcome: StepOutcome | Exception, *, backwards: bool = False) -> int:
        class FakeGoodSide:
            def test(self, name: str, candidate: Requirements) -> Step:
                if isinstance(outcome, Exception):
                    raise outcome
                assert "torch==2.12.0" in candidate.texts
                return Step(name, outcome, "figures")

        @contextlib.contextmanager
        def opened(options: Any, good: Requirements) -> Iterator[FakeGoodSide]:
            assert good.texts[0].endswith("/good")
            assert Path.cwd() == given_in
            yield FakeGoodSide()

        monkeypatch.setattr(GoodSide, "opened", opened)
        monkeypatch.chdir(tested)
        arguments = ("--checkout", str(tmp_path), *QUESTION)
        request = StepRequest(
            arguments,
            ("torch==2.12.0",),
            str(tmp_path / "cached.json"),
            backwards,
            str(given_in),
        )
        (tmp_path / REQUEST).write_text(STEP_REQUEST.dump(request))
        return git_step.main(str(tmp_path))

    return step


@pytest.mark.parametrize(
    ("outcome", "backwards", "code"),
    [
        (StepOutcome.GOOD, False, 0),
        (StepOutcome.BAD, False, 1),
        (StepOutcome.SKIPPED, False, 125),
        (StepOutcome.GOOD, True, 1),
        (StepOutcome.BAD, True, 0),
        (StepOutcome.SKIPPED, True, 125),
    ],
)
def test_git_is_told_by_the_exit_code(
    run: Run, outcome: StepOutcome, backwards: bool, code: int
) -> None:
    assert run(outcome, backwards=backwards) == code


def test_what_is_cached_is_not_measured_again(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(StepOutcome.BAD) == 1
    assert run(AssertionError("measured again")) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith("a change: bad: figures")
    assert second.endswith("a change: bad: figures (cached from before)")
    (step,) = StepCache(tmp_path / "cached.json").reread().steps.values()
    assert step.outcome is StepOutcome.BAD


def test_a_reason_to_stop_is_said_and_stops_git(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(CommandError("the good one cannot be measured: no")) == 128
    assert capsys.readouterr().out == "stop: the good one cannot be measured: no\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ('{"arguments": []}', "is not the request of a step: at extra_requirements"),
    ],
)
def test_a_malformed_request_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    (tmp_path / REQUEST).write_text(text)
    assert git_step.main(str(tmp_path)) == 128
    said = capsys.readouterr().out
    assert said.startswith(f"stop: {tmp_path / REQUEST} {words}")
    assert said.count("\n") == 1
