"""Processes of one run know each other, and nobody else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from fixtures.devices import family


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as process:
        yield process
        process.kill()


@pytest.fixture(autouse=True)
def nobody_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(family.FIRST, raising=False)
    monkeypatch.setattr(os, "environ", os.environ.copy())


def test_what_the_first_process_starts_is_of_its_family_while_it_lives(
    child: subprocess.Popen[bytes],
) -> None:
    family.begin()
    assert os.environ[family.FIRST] == str(os.getpid())
    assert family.is_member(os.getpid())
    assert family.is_member(child.pid)
    assert not family.is_member(os.getppid())
    assert family.size() >= 2
    child.kill()
    child.wait()
    assert not family.is_member(child.pid)


def test_who_is_born_into_a_family_stays_in_it(child: subprocess.Popen[bytes]) -> None:
    os.environ[family.FIRST] = str(child.pid)
    family.begin()
    assert os.environ[family.FIRST] == str(child.pid)
    assert family.is_member(child.pid)
    assert not family.is_member(os.getpid())
    assert family.size() == 1
