"""The command that installs a package is of the environment that lacks it."""

from __future__ import annotations

import shlex
import sys

import pytest

from fixtures.records.software import CONSTRAINTS, installation


def test_the_interpreter_is_this_one_and_the_versions_are_the_constrained_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/my venv/bin/python")
    assert "torchao==" in CONSTRAINTS.read_text(encoding="utf-8")
    command = installation("torchao", "gguf", upgrade=True)
    assert command.startswith("'/my venv/bin/python' -m pip install --upgrade torchao gguf -c ")
    assert shlex.split(command)[-1] == str(CONSTRAINTS)
