"""Versions that changed, and the command that installs a package where it is lacking."""

from __future__ import annotations

import shlex
import sys

from fixtures.records.software import CONSTRAINTS, installation, software_changes


def test_a_package_is_installed_beside_this_interpreter_at_the_constrained_version() -> None:
    words = shlex.split(installation("torchao", "gguf", upgrade=True))
    assert words[0] == sys.executable
    assert words[1:-2] == ["-m", "pip", "install", "--upgrade", "torchao", "gguf"]
    assert words[-2:] == ["-c", str(CONSTRAINTS)]
    assert "torchao==" in CONSTRAINTS.read_text(encoding="utf-8")


def test_software_changes_name_what_came_and_went() -> None:
    before, now = {"a": "1", "b": "1", "c": "1"}, {"a": "2", "b": "1", "d": "3"}
    assert software_changes(before, now) == ["a 1 -> 2", "c 1 -> absent", "d absent -> 3"]
    assert software_changes(before, before) == []
