"""What moves, with uv itself and a small package: each time it is what it stands for now."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.commands.checkout import git
from fixtures.commands.compare.environments import Environments
from fixtures.commands.compare.installer import InstallationError, Installer, run
from fixtures.commands.compare.requirements import Requirements
from tests.support.tiny_package import OfflineUv, TinyPackage

pytestmark = pytest.mark.long


@pytest.fixture
def package(tmp_path: Path) -> TinyPackage:
    return TinyPackage(tmp_path / "tiny")


@pytest.fixture
def environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environments:
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    (tmp_path / "wheels").mkdir()
    uv = OfflineUv(tmp_path / "none.txt", "--find-links", str(tmp_path / "wheels"))
    return Environments(tmp_path / "cached", Installer(uv), show=lambda text: None)


def installed(environments: Environments, word: str) -> tuple[str, Path]:
    """What the package says that is installed for this side, and by which interpreter."""
    found = environments.resolved(Requirements.parse([word]))
    python = environments.prepare(found)
    # Without byte code: that of a module of equal size and second would be taken for the new one.
    return run([str(python), "-B", "-c", "import tiny; print(tiny.SAID)"]).stdout.strip(), python


def test_a_branch_is_its_newest_commit_and_an_old_one_stays_cached(
    package: TinyPackage, environments: Environments
) -> None:
    address = f"tiny @ git+{package.folder.as_uri()}"
    first = package.commit("one")
    git(package.folder, "tag", "v1")
    said, place = installed(environments, f"{address}@main")
    assert said == "one"
    package.commit("two")
    assert installed(environments, f"{address}@main")[0] == "two"
    assert installed(environments, address)[0] == "two"
    for name in (first, first[:10], "v1"):
        assert installed(environments, f"{address}@{name}") == ("one", place)


def test_a_range_is_its_newest_release(
    package: TinyPackage, environments: Environments, tmp_path: Path
) -> None:
    package.wheel("one", "1.0", tmp_path / "wheels")
    assert [installed(environments, word)[0] for word in ("tiny", "tiny>=1")] == ["one", "one"]
    package.wheel("two", "1.1", tmp_path / "wheels")
    words = ("tiny", "tiny>=1", "tiny==1.*", "tiny==1.0", "tiny<1.1")
    said = [installed(environments, word)[0] for word in words]
    assert said == ["two", "two", "two", "one", "one"]


def test_what_was_replaced_in_its_place_is_installed_anew(
    package: TinyPackage, environments: Environments, tmp_path: Path
) -> None:
    wheel = package.wheel("one", "1.0", tmp_path / "elsewhere")
    words = (wheel.as_uri(), str(wheel), f"tiny @ {package.folder.as_uri()}")
    assert {installed(environments, word)[0] for word in words} == {"one"}
    package.wheel("two", "1.0", tmp_path / "elsewhere")
    assert {installed(environments, word)[0] for word in words} == {"two"}


@pytest.mark.parametrize("word", ["tiny>=9", "tiny @ git+file:///nowhere@main"])
def test_what_is_not_there_is_one_sentence(environments: Environments, word: str) -> None:
    with pytest.raises(InstallationError, match="cannot be installed: ") as caught:
        environments.resolved(Requirements.parse([word]))
    assert "\n" not in str(caught.value)
