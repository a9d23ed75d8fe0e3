"""Environments: made once, cached, made anew where an interrupt left a part, refused in words."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from fixtures.commands.compare.environments import READY, Environments
from fixtures.commands.compare.installer import InstallationError, Installer, index_options, run
from fixtures.commands.compare.requirements import Requirements, completed
from tests.commands.compare.test_requirements import checkout

REQUIREMENTS = Requirements.parse(["diffusers==0.36.0"])


class FakeUv:
    """Notes what it is asked to run; fails where told."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.fails = ""
        self.interrupts = ""
        self.pins: list[str] = []

    def __call__(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        words = " ".join(command[1:])
        if "config list" in words:
            told = "global.find-links='/nowhere /tmp'\n"
            return subprocess.CompletedProcess(command, 0, told, "")
        if words == "-c ":  # to the interpreter
            return run(command)
        self.asked.append(words)
        if self.interrupts and self.interrupts in words:
            raise KeyboardInterrupt
        if words.startswith("venv"):
            python = Path(command[-1], "bin", "python")
            python.parent.mkdir(parents=True)
            python.write_text("#!/bin/sh\n")
            python.chmod(0o755)
        failed = bool(self.fails) and self.fails in words
        said = "\n".join(self.pins) + "\n" if words.startswith("pip compile") else ""
        return subprocess.CompletedProcess(command, int(failed), said, "error: no\n  such release")


@pytest.fixture
def installer() -> FakeUv:
    return FakeUv()


@pytest.fixture
def environments(tmp_path: Path, installer: FakeUv) -> Environments:
    return Environments(tmp_path / "cached", Installer(installer), show=lambda text: None)


def test_an_environment_is_made_once_with_the_constraints_and_the_indexes_of_pip(
    environments: Environments, installer: FakeUv
) -> None:
    made = environments.prepare(REQUIREMENTS)
    assert environments.prepare(REQUIREMENTS) == made
    assert [words.split()[0] for words in installer.asked] == ["venv", "pip"]
    assert "diffusers==0.36.0" in installer.asked[1]
    assert "--find-links /tmp " in installer.asked[1]
    assert "/nowhere" not in installer.asked[1]
    held = (made.parent.parent / "constraints.txt").read_text()
    assert "numpy==" in held
    assert "transformers==" not in held
    assert environments.prepare(Requirements.parse(["diffusers==0.37.0"])) != made


def test_a_checkout_is_installed_anew_every_time(
    environments: Environments, installer: FakeUv, tmp_path: Path
) -> None:
    mine = Requirements.parse([str(checkout(tmp_path / "mine"))])
    for _ in range(2):
        environments.prepare(mine)
    assert "--reinstall-package diffusers" in installer.asked[-1]


def test_what_an_interrupt_left_is_made_anew(environments: Environments, installer: FakeUv) -> None:
    installer.interrupts = "pip install"
    with pytest.raises(KeyboardInterrupt):
        environments.prepare(REQUIREMENTS)
    installer.interrupts = ""
    made = environments.prepare(REQUIREMENTS)
    assert (made.parent.parent / READY).is_file()
    assert [words.split()[0] for words in installer.asked] == ["venv", "pip", "venv", "pip"]


@pytest.mark.parametrize("harm", ["removed", "a link to nowhere", "broken", "not executable"])
def test_one_without_an_interpreter_is_made_anew(
    environments: Environments, installer: FakeUv, harm: str
) -> None:
    python = environments.prepare(REQUIREMENTS)
    python.unlink()
    if harm == "a link to nowhere":
        python.symlink_to("/nowhere/python")
    elif harm != "removed":
        python.write_bytes(b"\x7fELF")
        python.chmod(0o755 if harm == "broken" else 0o644)
    assert environments.prepare(REQUIREMENTS) == python
    assert run([str(python), "-c", ""]).returncode == 0
    assert [words.split()[0] for words in installer.asked] == ["venv", "pip", "venv", "pip"]


def test_while_one_is_made_anew_it_is_not_taken_to_be_whole(
    environments: Environments, installer: FakeUv, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the removal of what was there has left when it was interrupted."""
    python = environments.prepare(REQUIREMENTS)
    content = python.read_bytes()
    python.unlink()
    monkeypatch.setattr(shutil, "rmtree", lambda place, ignore_errors: None)
    installer.interrupts = "venv"
    with pytest.raises(KeyboardInterrupt):
        environments.prepare(REQUIREMENTS)
    python.write_bytes(content)
    python.chmod(0o755)
    with pytest.raises(KeyboardInterrupt):
        environments.prepare(REQUIREMENTS)


def test_what_cannot_be_resolved_or_installed_is_one_sentence_and_not_cached(
    environments: Environments, installer: FakeUv
) -> None:
    for fails, step in (("compile", environments.resolved), ("install", environments.prepare)):
        installer.fails = f"pip {fails}"
        with pytest.raises(
            InstallationError, match=r"^diffusers>=0.36 cannot be .*: error: no such"
        ):
            step(Requirements.parse(["diffusers>=0.36"]))
    installer.fails = ""
    environments.prepare(Requirements.parse(["diffusers>=0.36"]))


def test_what_moves_is_resolved_each_time_and_has_an_environment_for_each_commit(
    environments: Environments, installer: FakeUv
) -> None:
    main = Requirements.parse(["diffusers @ git+https://example.com/diffusers@main"])
    pythons = set()
    for commit in ("a" * 40, "b" * 40, "a" * 40):
        installer.pins = [f"diffusers @ git+https://example.com/diffusers@{commit}", "numpy==2.4.6"]
        found = environments.resolved(main)
        assert found.texts == installer.pins[:1]
        pythons.add(environments.prepare(found))
    assert len(pythons) == 2
    compiled = [words for words in installer.asked if words.startswith("pip compile")]
    assert len(compiled) == 3
    assert all("--find-links /tmp" in words and "-c " in words for words in compiled)
    installer.pins = ["diffusers[torch]==0.42.1", "huggingface-hub==2.4.0"]
    (release,) = completed([environments.resolved(Requirements.parse(["diffusers[torch]>=0.36"]))])
    assert release.texts == ["diffusers[torch]==0.42.1", "transformers==5.23.0"]


def test_for_what_is_pinned_nobody_is_asked(
    environments: Environments, installer: FakeUv, tmp_path: Path
) -> None:
    commit = f"diffusers @ git+https://example.com/diffusers@{'c' * 40}"
    for word in ("diffusers==0.36.0", commit, str(checkout(tmp_path / "mine"))):
        asked = Requirements.parse([word])
        assert environments.resolved(asked) is asked
    assert installer.asked == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, installer: FakeUv) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InstallationError, match=r"cannot be cached in .*set XDG_CACHE_HOME"):
        Environments(tmp_path / "file" / "cached", Installer(installer)).prepare(REQUIREMENTS)


@pytest.mark.parametrize("name", ["plain", "it's", 'an-"odd"-one'])
def test_pips_indexes_are_uvs_too(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    links = repr(f"{folder} /nowhere")  # as pip prints them
    configured = (
        f"global.index-url='https://one.example/simple'\n:env:.find-links={links}\n"
        f"site.extra-index-url='https://two.example/simple file:///nowhere'\nglobal.timeout='9'\n"
        "global.index-url='https://one.example/simple'\n"
    )
    assert index_options(configured) == [
        *("--default-index", "https://one.example/simple"),
        *("--find-links", str(folder)),
        *("--index", "https://two.example/simple"),
        *("--index-strategy", "unsafe-best-match"),
    ]
    assert index_options("") == []
