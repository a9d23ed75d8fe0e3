"""Frames of deep calls find room in one chunk of memory."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable

import pytest

from fixtures.measuring.frame_room import with_frame_room

CALLS = 2000


def faults_at_any_depth(call: Callable[[Callable[[], int]], int]) -> int:
    """The most page faults of so many calls of a function, over the places in a chunk.

    A chunk of 16 KiB has room for some 200 of these frames, so some depth is at its end.
    """

    def callee(values: int = 0) -> int:
        return values

    def measured() -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(CALLS):
            callee()
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    def deeper(levels: int) -> int:
        return deeper(levels - 1) if levels else call(measured)

    return max(deeper(levels) for levels in range(300))


@pytest.mark.skipif(
    not (sys.platform == "linux" and sys.version_info[:2] in ((3, 11), (3, 12))),
    reason="chunks are mapped again for each call by CPython 3.11 and 3.12, seen on Linux",
)
def test_no_call_maps_memory_for_its_frame() -> None:
    assert faults_at_any_depth(lambda function: function()) >= CALLS
    assert faults_at_any_depth(lambda function: with_frame_room(function)()) < CALLS / 10


def test_arguments_and_results_are_those_of_the_function() -> None:
    @with_frame_room
    def divided(number: int, *, by: int) -> float:
        """Divide."""
        return number / by

    assert divided(6, by=4) == 1.5
    with pytest.raises(ZeroDivisionError):
        divided(1, by=0)
