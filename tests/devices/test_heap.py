"""Memory that is freed and needed again causes no page faults; without the setting it does."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from fixtures.devices import memory_layout as heap
from fixtures.settings import REPOSITORY

FAULTS = """
import resource, sys, torch
torch.set_num_threads(1)
from fixtures.devices.memory_layout import keep_freed_memory
if sys.argv[1] == "kept":
    assert keep_freed_memory()
def call():
    for size_mib in (40, 3, 17):
        torch.ones(size_mib * 2**18)
for _ in range(5):  # until small blocks that stay have found places between the large ones
    call()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
call()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    """Page faults of a call that was made before, in a new process."""
    found = subprocess.run(
        [sys.executable, "-c", FAULTS, how],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(found.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="mallopt is glibc's")
def test_a_call_made_before_finds_its_memory_in_place_where_it_would_be_given_back() -> None:
    if not hasattr(ctypes.CDLL(None), "mallopt"):
        pytest.skip("this C library has no mallopt")
    assert faults("kept") < 100
    assert faults("given back") > 1000


def test_a_c_library_without_the_setting_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert not heap.keep_freed_memory()
