"""What uv itself installs of a small package: each time it is what lies there now."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.commands.bisect.__main__ import commits_between, git
from fixtures.commands.compare.environments import InstallationError, _run, environment
from fixtures.commands.compare.requirements import Requirements
from tests.support.tiny_package import TinyPackage, without_an_index

pytestmark = pytest.mark.long


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TinyPackage:
    without_an_index(monkeypatch, tmp_path)
    return TinyPackage(tmp_path / "tiny")


def installed(requirements: Requirements) -> str:
    """What the package says that is installed."""
    with environment(requirements) as python:
        return _run(str(python), "-c", "import tiny; print(tiny.SAID)").stdout.strip()


def test_commits_of_any_branch_are_installed_and_the_checkout_stays_as_it_is(
    package: TinyPackage,
) -> None:
    for number in range(3):
        package.commit(str(number))
    git(package.folder, "update-ref", "refs/remotes/origin/main", "main")
    git(package.folder, "reset", "--quiet", "--hard", "main~2")
    (package.folder / "tiny.py").write_text("SAID = 'not committed'\n")
    before = git(package.folder, "status", "--porcelain", "--branch")
    row = commits_between(package.folder, "main", "origin/main")
    said = [installed(Requirements.of([candidate.source])) for candidate in row]
    assert said == ["0", "1", "2"]
    assert git(package.folder, "status", "--porcelain", "--branch") == before


def test_what_was_replaced_in_its_place_is_installed_anew(
    package: TinyPackage, tmp_path: Path
) -> None:
    wheel = package.wheel("one", "1.0", tmp_path / "elsewhere")
    words = (wheel.as_uri(), package.folder.as_uri())
    sides = [Requirements.parse([word]) for word in (str(wheel), str(package.folder))]
    sides += [Requirements.parse([f"tiny @ {word}"]) for word in words]
    assert {installed(side) for side in sides} == {"one"}
    package.wheel("two", "1.0", tmp_path / "elsewhere")
    assert {installed(side) for side in sides} == {"two"}


@pytest.mark.parametrize("word", ["tiny==9", "tiny @ git+file:///nowhere@main"])
def test_what_is_not_there_is_one_sentence(package: TinyPackage, word: str) -> None:
    with pytest.raises(InstallationError, match="cannot be installed: ") as caught:
        installed(Requirements.parse([word]))
    assert "\n" not in str(caught.value)
