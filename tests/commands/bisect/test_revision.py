"""The step of `git bisect run`: what it measures, keeps and tells git."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fixtures.bisect import revision
from fixtures.bisect.measuring import Measuring
from fixtures.bisect.revisions import ORDER, git
from fixtures.bisect.steps import KeptSteps, Step, StepsError
from fixtures.compare.requirements import Requirements

Run = Callable[..., int]
QUESTION = [
    "--good",
    "a",
    "--bad",
    "b",
    "-k",
    "x",
    "--metric",
    "latency",
    "--with",
    "torch==2.12.0",
]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs the step with this answer, for a commit of a package."""
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

    def step(answer: str | Exception, *, backwards: bool = False) -> int:
        class FakeMeasuring:
            def step(self, name: str, candidate: Requirements) -> Step:
                if isinstance(answer, Exception):
                    raise answer
                assert "torch==2.12.0" in candidate.texts
                return Step(name, answer, "figures")

        @contextlib.contextmanager
        def of(options: Any, good: Requirements) -> Iterator[FakeMeasuring]:
            assert good.texts[0].endswith("/good")
            yield FakeMeasuring()

        monkeypatch.setattr(Measuring, "of", of)
        order = {
            "arguments": ["--checkout", str(tmp_path), *QUESTION],
            "kept": str(tmp_path / "kept.json"),
            "backwards": backwards,
        }
        (tmp_path / ORDER).write_text(json.dumps(order))
        return revision.main(str(tmp_path))

    return step


@pytest.mark.parametrize(
    ("answer", "backwards", "code"),
    [
        ("good", False, 0),
        ("bad", False, 1),
        ("skipped", False, 125),
        ("good", True, 1),
        ("bad", True, 0),
        ("skipped", True, 125),
    ],
)
def test_git_is_told_by_the_exit_code(run: Run, answer: str, backwards: bool, code: int) -> None:
    assert run(answer, backwards=backwards) == code


def test_what_is_kept_is_not_measured_again(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("bad") == 1
    assert run(AssertionError("measured again")) == 1
    said = capsys.readouterr().out
    assert "a change: bad: figures" in said
    assert "(kept from before)" in said
    (step,) = KeptSteps(tmp_path / "kept.json").reread().steps.values()
    assert step.answer == "bad"


def test_a_reason_to_stop_is_said_and_stops_git(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(StepsError("the good one cannot be measured: no")) == 128
    assert capsys.readouterr().out == "stop: the good one cannot be measured: no\n"
