"""Frames have room: no depth of the stack makes calls slow."""

from __future__ import annotations

import sys
from types import FunctionType

import pytest

from fixtures.worker import tasks
from fixtures.worker.tasks import FRAME_WORDS

CALLS = 2_000


def _leaf(*values: int) -> int:
    return len(values)


def _fault_count() -> int:
    resource = pytest.importorskip("resource")
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)


def _faults(depth: int) -> int:
    """Page faults of many calls, each at this depth of the stack."""
    if depth:
        return _faults(depth - 1)
    before = _fault_count()
    for _ in range(CALLS):
        _leaf(1, 2, 3)
    return _fault_count() - before


def _most_faults() -> int:
    return max(_faults(depth) for depth in range(200))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="frames are not on a stack of chunks")
@pytest.mark.skipif(sys.platform != "linux", reason="others count page faults differently")
def test_no_depth_of_the_stack_asks_the_system_for_room() -> None:
    with_room = FunctionType(_most_faults.__code__.replace(co_stacksize=FRAME_WORDS), globals())
    assert with_room() < CALLS // 2 <= _most_faults()
    assert tasks.run.__code__.co_stacksize == FRAME_WORDS
