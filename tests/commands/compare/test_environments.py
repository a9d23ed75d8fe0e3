"""Environments: made once, cached, made anew where an interrupt left a part, refused in words."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from fixtures.commands.compare.environments import (
    READY,
    Environments,
    InstallationError,
    index_options,
)
from fixtures.commands.compare.requirements import Requirements
from tests.commands.compare.test_requirements import checkout

REQUIREMENTS = Requirements.parse(["diffusers==0.36.0"])


class Installer:
    """Notes what it is asked to run; fails where told."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.fails = ""
        self.interrupts = ""

    def __call__(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        words = " ".join(command[1:])
        if "config list" in words:
            told = "global.find-links='/nowhere /tmp'\n"
            return subprocess.CompletedProcess(command, 0, told, "")
        self.asked.append(words)
        if self.interrupts and self.interrupts in words:
            raise KeyboardInterrupt
        if words.startswith("venv"):
            Path(command[-1]).mkdir(parents=True)
        failed = bool(self.fails) and self.fails in words
        return subprocess.CompletedProcess(command, int(failed), "", "error: no\n  such release")


@pytest.fixture
def installer() -> Installer:
    return Installer()


@pytest.fixture
def environments(tmp_path: Path, installer: Installer) -> Environments:
    return Environments(tmp_path / "cached", installer, show=lambda text: None)


def test_an_environment_is_made_once(environments: Environments, installer: Installer) -> None:
    made = environments.prepare(REQUIREMENTS)
    assert environments.prepare(REQUIREMENTS) == made
    assert [words.split()[0] for words in installer.asked] == ["venv", "pip"]
    assert "diffusers==0.36.0" in installer.asked[1]
    assert made.command[1:] == ["-m", "fixtures.commands.compare.side_server"]


def test_other_requirements_have_another_one(environments: Environments) -> None:
    other = Requirements.parse(["diffusers==0.37.0"])
    assert environments.prepare(REQUIREMENTS).python != environments.prepare(other).python


def test_what_is_not_named_has_the_versions_of_the_constraints(
    environments: Environments,
) -> None:
    place = environments.prepare(REQUIREMENTS).python.parent.parent
    held = (place / "constraints.txt").read_text()
    assert "numpy==" in held
    assert "transformers==" not in held


def test_what_an_interrupt_left_is_made_anew(
    environments: Environments, installer: Installer
) -> None:
    installer.interrupts = "pip install"
    with pytest.raises(KeyboardInterrupt):
        environments.prepare(REQUIREMENTS)
    installer.interrupts = ""
    made = environments.prepare(REQUIREMENTS)
    assert (made.python.parent.parent / READY).is_file()
    assert [words.split()[0] for words in installer.asked] == ["venv", "pip", "venv", "pip"]


def test_a_failing_installation_is_one_sentence_and_not_cached(
    environments: Environments, installer: Installer
) -> None:
    installer.fails = "pip install"
    with pytest.raises(
        InstallationError, match=r"diffusers==0.36.0 cannot be installed: error: no such release"
    ):
        environments.prepare(REQUIREMENTS)
    installer.fails = ""
    environments.prepare(REQUIREMENTS)


def test_a_checkout_is_installed_anew_every_time(
    environments: Environments, installer: Installer, tmp_path: Path
) -> None:
    mine = Requirements.parse([str(checkout(tmp_path / "mine"))])
    environments.prepare(mine)
    environments.prepare(mine)
    assert "--reinstall-package diffusers" in installer.asked[-1]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, installer: Installer) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InstallationError, match=r"cannot be cached in .*set XDG_CACHE_HOME"):
        Environments(tmp_path / "file" / "cached", installer).prepare(REQUIREMENTS)


def test_pips_indexes_are_uvs_too(tmp_path: Path) -> None:
    configured = (
        f"global.index-url='https://one.example/simple'\n:env:.find-links='{tmp_path} /nowhere'\n"
        f"site.extra-index-url='https://two.example/simple file:///nowhere'\nglobal.timeout='9'\n"
        "global.index-url='https://one.example/simple'\n"
    )
    assert index_options(configured) == [
        *("--default-index", "https://one.example/simple"),
        *("--find-links", str(tmp_path)),
        *("--index", "https://two.example/simple"),
        *("--index-strategy", "unsafe-best-match"),
    ]
    assert index_options("") == []


def test_the_installer_is_told_of_them(environments: Environments, installer: Installer) -> None:
    environments.prepare(REQUIREMENTS)
    assert "--find-links /tmp " in installer.asked[1]
    assert "/nowhere" not in installer.asked[1]
