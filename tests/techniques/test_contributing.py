"""A new technique as CONTRIBUTING.md describes it: followed in a copy of the repository."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from fixtures.devices.cpu import CpuDevice
from fixtures.settings import REPOSITORY
from fixtures.techniques import CATALOGUE
from tests.support.half_done import brief, complaint, complaint_at_rest, nothing
from tests.support.running import own_environment

TEXT = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTION = re.findall(r"^## A new technique$(.*?)^## ", TEXT, re.MULTILINE | re.DOTALL)[0]
COPIED = ("conftest.py", "pyproject.toml", "fixtures", "perf_tests", "tests", "baselines")
ARGUMENTS = {
    "perf": ("perf_tests",),
    "refresh": ("perf_tests", "--perf-update-baselines"),
    "tests": ("tests/techniques/test_techniques.py",),
}
"""What the sessions of `noxfile.py` hand to pytest; of `tests/`, the one file that matters here."""
SMALL = ("--perf-workload", "storybook")
"""Simulated at full size, the commands take minutes."""
TIMEOUT_S = 900


def documented(pattern: str) -> str:
    """The one place in the section that matches."""
    (text,) = re.findall(pattern, SECTION, re.DOTALL)
    return str(text)


CODE = documented(r"```python\n(.*?)```")
FILE = documented(r"Append this to\s`(\S+)`")
NAME = re.findall(r"^def (\w+)\(workload", CODE, re.MULTILINE)[0]


COMMANDS = [
    (session, *shlex.split(options))
    for session, options in re.findall(r"^python -m nox -s (\w+) -- (.+)$", SECTION, re.MULTILINE)
]
TESTS, REFRESH_CPU, REFRESH, PERF_CPU, PERF = COMMANDS
"""Each a session and its options."""


def run(command: tuple[str, ...], folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run it by pytest alone, with further options."""
    session, *options = command
    return subprocess.run(
        [sys.executable, "-m", "pytest", *ARGUMENTS[session], *options, *more],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=own_environment(),
        check=False,
    )


def test_it_is_in_effect_and_complains_where_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process: the code runs below the module that it is appended to."""
    monkeypatch.setattr(CATALOGUE, "techniques", dict(CATALOGUE.techniques))
    module = vars(importlib.import_module(FILE.removesuffix(".py").replace("/", ".")))
    exec(compile(CODE, FILE, "exec"), dict(module))  # noqa: S102
    workload, device = brief("storybook"), CpuDevice()
    assert complaint(NAME, workload, device, nothing) is None
    said = complaint_at_rest(
        NAME,
        workload,
        device,
        lambda pipeline: pipeline.vae.to(memory_format=torch.contiguous_format),
    )
    assert "has strides" in (said or "")


@pytest.mark.long
def test_its_steps_in_a_copy_of_the_repository(tmp_path: Path) -> None:
    for name in COPIED:
        copy = shutil.copytree if (REPOSITORY / name).is_dir() else shutil.copy2
        copy(REPOSITORY / name, tmp_path / name)
    with (tmp_path / FILE).open("a", encoding="utf-8") as file:
        file.write(f"\n\n{CODE}")

    tests = run(TESTS, tmp_path)
    assert tests.returncode == 0, tests.stdout
    assert re.search(r"\b3 passed", tests.stdout)
    for command in (REFRESH_CPU, PERF_CPU):
        chosen = run(command, tmp_path, "--collect-only", "-q")
        assert chosen.returncode == 0, chosen.stdout
        assert set(re.findall(r"\[(\S+)\]", chosen.stdout)) == {f"storybook-{NAME}"}

    # This test of the suite measures nothing.
    before = run(PERF, tmp_path, *SMALL, "-k", f"{NAME} and has_an_entry")
    assert before.returncode == 1
    stored = tmp_path / "baselines" / "simulated" / "storybook.json"
    assert f"storybook-{NAME}: no entry in {stored}" in before.stdout

    recorded = run(REFRESH, tmp_path, *SMALL)
    assert recorded.returncode == 0, recorded.stdout
    assert NAME in json.loads(stored.read_text("utf-8"))["scenarios"]

    after = run(PERF, tmp_path, *SMALL)
    assert after.returncode == 0, after.stdout
    assert "1 judged: 1 passed, 0 failed" in after.stdout
