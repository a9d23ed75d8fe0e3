"""One environment, installed as README says, for all sessions: it takes minutes and 1.6 GB."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.sessions.machine import Machine
from tests.sessions.pages import block, skip_without

INSTALL = block("README.md", "pip install nox")
PYPI = "https://pypi.org/simple/"


@pytest.fixture(autouse=True, scope="session")
def interruptible() -> Iterator[None]:
    """Workers of pytest-xdist ignore Ctrl-C, and what they start would, too."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.fixture(scope="session")
def machine_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Machine]:
    """Make a machine on which pip can install; where no index answers it is a skip."""

    def make(name: str = "diffusers-perf", python: str = "") -> Machine:
        root = tmp_path_factory.mktemp("machine")
        made = Machine.new(root, name, python)
        fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "nox"]
        done = subprocess.run(
            [*fetch, "--dest", str(root)], env=made.variables, capture_output=True, text=True
        )
        if done.returncode:
            skip_without(made.variables.get("PIP_INDEX_URL", PYPI))
            pytest.fail(f"pip cannot install: {done.stderr}")
        return made

    return make


@pytest.fixture(scope="session")
def installed(machine_of: Callable[..., Machine]) -> Iterator[Machine]:
    """Made by README's Install block where there is no `python`, and by the first session."""
    machine = machine_of()
    assert "python" not in [path.name for path in machine.commands.iterdir()]
    machine.run(f"{INSTALL}\npython -m nox -s environment")
    yield machine
    shutil.rmtree(machine.folder / ".nox")


@pytest.fixture
def machine(installed: Machine, tmp_path: Path) -> Iterator[Machine]:
    """A copy of its own, measured in the shared environment."""
    yield Machine.new(tmp_path).take_environment(installed)
    shutil.rmtree(tmp_path / "home", ignore_errors=True)
