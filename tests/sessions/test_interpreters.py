"""README on every Python that it names, as far as this machine has it and wheels for it."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from nox import project

from tests.sessions.conftest import INSTALL
from tests.sessions.machine import Machine
from tests.sessions.pages import command

pytestmark = pytest.mark.long
HERE = ".".join(map(str, sys.version_info[:2]))
"""Whose machine the other sessions share."""
VERSIONS = [version for version in ("3.10", "3.11", "3.12", "3.13", "3.14") if version != HERE]
NEEDS_TORCH = re.compile("torch|diffusers|accelerate|transformers|xformers|flip-evaluator")
"""The suite is collected without them."""


def interpreter(version: str) -> str:
    """This machine's interpreter of a version; a skip where there is none."""
    pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python3"))
    found = str(pyenv[-1]) if pyenv else shutil.which(f"python{version}", path="/usr/bin:/bin")
    return found or pytest.skip(f"there is no Python {version} here")


@pytest.mark.parametrize("version", VERSIONS)
def test_it_installs_reports_and_collects(
    version: str, machine_of: Callable[..., Machine], tmp_path: Path
) -> None:
    machine = machine_of(python=interpreter(version))
    assert machine.run("python3 --version").startswith(f"Python {version}.")
    machine.run(INSTALL)
    rebuilt = command("docs/report.md", "nox -s report -- results.json").replace("DIR", "report")
    assert "results.json: no such file" in machine.do(f"python -m {rebuilt}", status=1)

    pyproject = project.load_toml(machine.folder / "pyproject.toml")
    requirements = pyproject["project"]["dependencies"]
    light = [one for one in requirements if not NEEDS_TORCH.match(one)]
    (tmp_path / "light.txt").write_text("\n".join(light), encoding="utf-8")
    (tmp_path / "all.txt").write_text("\n".join(requirements), encoding="utf-8")
    install = "python -m pip install --quiet -c constraints.txt"
    said = machine.do(
        f"{install} -r {tmp_path}/light.txt\n"
        "python -m pytest perf_tests --collect-only -q --perf-device simulated\n"
    )
    assert "test_activation.py::test_activation[sd15-fp16]" in said

    wheels = machine.do(f"{install} --dry-run --report - -r {tmp_path}/all.txt")
    if "+cpu" not in wheels:
        pytest.skip(f"no CPU wheel of torch for Python {version}; all that goes without it passed")
    shutil.rmtree(machine.folder / ".venv")
    perf = command("README.md", "--perf-device simulated -n 2")
    said = machine.run(f'{INSTALL}\n{perf} -k "[sd15-fp16]"')
    shutil.rmtree(machine.folder / ".nox")
    assert "1 judged: 1 passed" in said
