"""The command that installs a package is of the environment that lacks it."""

from __future__ import annotations

import shlex
import sys
from unittest import mock

from fixtures.records.software import CONSTRAINTS, installation


def test_the_interpreter_is_this_one_and_the_versions_are_the_constrained_ones() -> None:
    assert "torchao==" in CONSTRAINTS.read_text(encoding="utf-8")
    with mock.patch.object(sys, "executable", "/my venv/bin/python"):
        command = shlex.split(installation("torchao", "gguf", upgrade=True))
    pip = ["/my venv/bin/python", "-m", "pip", "install", "--upgrade"]
    assert command == [*pip, "torchao", "gguf", "-c", str(CONSTRAINTS)]
