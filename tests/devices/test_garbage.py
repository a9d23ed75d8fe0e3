"""Garbage that is younger is found, and what is older is not searched."""

from __future__ import annotations

import gc
import weakref

import pytest

from fixtures.devices.garbage import younger_only


class Node:
    """What refers to itself, so that only the collector frees it."""

    def __init__(self) -> None:
        self.itself = self


def left() -> weakref.ref[Node]:
    """Garbage that nobody has collected yet."""
    return weakref.ref(Node())


def test_only_what_is_younger_is_collected_until_the_end() -> None:
    older = left()
    with younger_only():
        younger = left()
        gc.collect()
        assert older() is not None
        assert younger() is None
    gc.collect()
    assert older() is None


def test_everything_is_searched_again_whatever_happens() -> None:
    older = left()
    with pytest.raises(KeyboardInterrupt), younger_only():
        raise KeyboardInterrupt
    assert gc.get_freeze_count() == 0
    gc.collect()
    assert older() is None
