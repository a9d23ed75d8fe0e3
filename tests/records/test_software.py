"""The command that installs a package is of the environment that lacks it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from fixtures.records.software import CONSTRAINTS, installation
from fixtures.settings import REPOSITORY


@pytest.mark.parametrize(
    ("python", "folder", "expected"),
    [
        (REPOSITORY / ".nox/bin/python", REPOSITORY, ".nox/bin/python -m pip install torchao -c"),
        (Path("/v/bin/python"), REPOSITORY, "/v/bin/python -m pip install torchao -c"),
        (Path("/my venv/bin/python"), REPOSITORY, "'/my venv/bin/python' -m pip install torch"),
        # A shell would look for a bare name elsewhere.
        (Path("/usr/bin/python"), Path("/usr/bin"), "/usr/bin/python -m pip install torchao -c"),
    ],
)
def test_the_interpreter_is_named_as_short_as_it_can_be(
    python: Path, folder: Path, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "executable", str(python))
    assert installation("torchao").startswith(expected)


def test_the_versions_are_the_constrained_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    assert "torchao==" in CONSTRAINTS.read_text(encoding="utf-8")
    words = shlex.split(installation("torchao", "gguf", upgrade=True))
    assert words[3:-2] == ["install", "--upgrade", "torchao", "gguf"]
    assert words[-2:] == ["-c", "constraints.txt"]
