"""Environments: with the constraints and the indexes of pip, gone at the end, refused in words."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest

from fixtures.commands.compare import environments
from fixtures.commands.compare.environments import InstallationError, environment, index_options
from fixtures.commands.compare.requirements import Requirements

REQUIREMENTS = Requirements.parse(["diffusers==0.36.0"])


class FakeUv:
    """Notes what it is asked to run, and makes as little of it as is read; fails where told."""

    def __init__(self) -> None:
        self.asked: dict[str, str] = {}
        self.fails = "nothing"

    def __call__(self, *command: str) -> subprocess.CompletedProcess[str]:
        words = " ".join(command[2:])  # without --quiet
        if "config list" in words:
            return subprocess.CompletedProcess(command, 0, "global.find-links='/tmp'\n", "")
        if words.startswith(self.fails):
            return subprocess.CompletedProcess(command, 1, "", "error: no\n  such release")
        self.asked[words.partition(" --")[0]] = words
        if words.startswith("venv"):
            Path(command[-1], "lib", "python", "site-packages").mkdir(parents=True)
        elif words.startswith("pip compile"):
            Path(command[-1]).write_text("numpy==2\n")
        return subprocess.CompletedProcess(command, 0, "/cached/packages\n", "")


@pytest.fixture
def uv(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeUv:
    fake = FakeUv()
    monkeypatch.setattr(environments, "_run", fake)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return fake


def test_an_environment_has_the_constraints_and_the_indexes_of_pip_and_is_gone_at_the_end(
    uv: FakeUv,
) -> None:
    with environment(REQUIREMENTS) as python:
        folder = python.parent.parent
        held, asked = ((folder / f"{name}.txt").read_text() for name in ("constraints", "asked"))
        (linked,) = folder.glob("lib/*/site-packages/*.pth")
        assert linked.read_text() == "import site; site.addsitedir('/cached/packages')\n"
    assert not folder.exists()
    assert [*uv.asked] == ["venv", "pip compile", "tool run"]
    for resolves in ("pip compile", "tool run"):
        assert "--find-links /tmp " in uv.asked[resolves]
    assert asked == "diffusers==0.36.0\n"
    assert "numpy==" in held
    assert "transformers==" not in held


@pytest.mark.parametrize("fails", ["venv", "pip compile", "tool run"])
def test_what_cannot_be_installed_is_one_sentence(uv: FakeUv, fails: str, tmp_path: Path) -> None:
    uv.fails = fails
    with (
        pytest.raises(InstallationError, match=r"^diffusers==0.36.0 cannot be .*: error: no such"),
        environment(REQUIREMENTS),
    ):
        pytest.fail("it was made")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with (
        pytest.raises(InstallationError, match=r"cannot be installed: .*No such file"),
        environment(REQUIREMENTS),
    ):
        pytest.fail("it was made")


def test_pips_indexes_are_uvs_too() -> None:
    links = repr("""it's-"odd" /wheels""")  # as pip prints them
    configured = (
        f"global.index-url='https://one.example/simple'\n:env:.find-links={links}\n"
        "site.extra-index-url='https://two.example/simple'\nglobal.timeout='9'\n"
        "global.index-url='https://one.example/simple'\n"
    )
    assert index_options(configured) == [
        *("--default-index", "https://one.example/simple"),
        *("--find-links", """it's-"odd\""""),
        *("--find-links", "/wheels"),
        *("--index", "https://two.example/simple"),
        *("--index-strategy", "unsafe-best-match"),
    ]
    assert index_options("") == []
