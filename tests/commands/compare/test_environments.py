"""Environments: with the constraints and the indexes of pip, gone at the end, refused in words."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fixtures.commands.compare import environments
from fixtures.commands.compare.environments import InstallationError, environment, index_options
from fixtures.commands.compare.requirements import Requirements
from tests.commands.compare.test_requirements import checkout

REQUIREMENTS = Requirements.parse(["diffusers==0.36.0"])


class FakeUv:
    """Notes what it is asked to run; fails where told."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.fails = "nothing"

    def __call__(self, *command: str) -> subprocess.CompletedProcess[str]:
        words = " ".join(command[1:])
        if "config list" in words:
            return subprocess.CompletedProcess(command, 0, "global.find-links='/tmp'\n", "")
        self.asked.append(words)
        failed = words.startswith(self.fails)
        return subprocess.CompletedProcess(command, int(failed), "", "error: no\n  such release")


@pytest.fixture
def uv(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeUv:
    fake = FakeUv()
    monkeypatch.setattr(environments, "_run", fake)
    monkeypatch.setattr(environments, "CACHE", tmp_path / "cache")
    return fake


def test_an_environment_has_the_constraints_and_the_indexes_of_pip_and_is_gone_at_the_end(
    uv: FakeUv,
) -> None:
    with environment(REQUIREMENTS) as python:
        folder = python.parent.parent
        held = (folder / "constraints.txt").read_text()
    assert not folder.exists()
    assert [words.split()[0] for words in uv.asked] == ["venv", "pip"]
    assert "diffusers==0.36.0" in uv.asked[1]
    assert "--find-links /tmp " in uv.asked[1]
    assert "--reinstall-package" not in uv.asked[1]
    assert "numpy==" in held
    assert "transformers==" not in held


def test_what_lies_at_an_address_is_not_taken_from_uvs_cache(uv: FakeUv, tmp_path: Path) -> None:
    for word in (str(checkout(tmp_path / "mine")), "diffusers @ https://example.com/main.zip"):
        with environment(Requirements.parse([word])):
            assert "--reinstall-package diffusers" in uv.asked[-1]


@pytest.mark.parametrize("fails", ["venv", "pip install"])
def test_what_cannot_be_installed_is_one_sentence(uv: FakeUv, fails: str, tmp_path: Path) -> None:
    uv.fails = fails
    with (
        pytest.raises(InstallationError, match=r"^diffusers==0.36.0 cannot be .*: error: no such"),
        environment(REQUIREMENTS),
    ):
        pytest.fail("it was made")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(uv: FakeUv, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    with (
        pytest.raises(InstallationError, match=r"can be made in .*set XDG_CACHE_HOME"),
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
