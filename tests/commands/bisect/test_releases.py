"""Releases between two: in order, without pre-releases, refused where there is none."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from fixtures.commands.bisect.releases import pip_index, releases_between
from fixtures.commands.errors import CommandError

PRINTED = """diffusers (0.42.1)
Available versions: 0.42.1, 0.42.0, 0.41.0, 0.41.0rc1, 0.36.0, 0.4.0
  INSTALLED: 0.42.1
"""


def index(package: str) -> str:
    return PRINTED


def test_releases_are_ordered_by_version_and_pre_releases_left_out() -> None:
    found = releases_between("diffusers", "0.4.0", "0.42.0", index)
    assert found == ["0.4.0", "0.36.0", "0.41.0", "0.42.0"]


def test_a_pre_release_that_is_named_takes_part() -> None:
    assert releases_between("diffusers", "0.41.0rc1", "0.41.0", index) == ["0.41.0rc1", "0.41.0"]


def test_good_may_be_the_newer_one() -> None:
    assert releases_between("diffusers", "0.42.0", "0.36.0", index)[0] == "0.42.0"


@pytest.mark.parametrize(
    ("good", "bad", "words"),
    [
        ("0.36.0", "0.36.0", "not two versions"),
        ("0.36.0", "newest", "not two versions"),
        ("0.35.0", "0.36.0", "diffusers 0.35.0 is not a release; the newest are 0.42.1"),
    ],
)
def test_ends_that_are_not_releases_are_refused(good: str, bad: str, words: str) -> None:
    with pytest.raises(CommandError, match=words):
        releases_between("diffusers", good, bad, index)


def test_an_index_without_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: Any, **_: Any) -> Any:
        assert command[-3:] == ["index", "versions", "difusers"]
        return subprocess.CompletedProcess(command, 1, "", "ERROR: No matching distribution\n")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(CommandError, match="gives no versions of difusers: ERROR: No matching"):
        pip_index("difusers")
