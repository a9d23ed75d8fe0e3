"""Garbage is collected first, and then only what is younger is searched."""

from __future__ import annotations

import gc
import weakref

import pytest

from fixtures.devices.garbage import collector_off, younger_only


class Node:
    """What refers to itself, so that only the collector frees it."""

    def __init__(self) -> None:
        self.itself = self


def left() -> weakref.ref[Node]:
    """Garbage that nobody has collected yet."""
    return weakref.ref(Node())


def test_what_is_older_is_collected_first_or_after_the_end() -> None:
    kept = Node()
    older = weakref.ref(kept)
    with collector_off():
        garbage = left()
        with younger_only():
            assert garbage() is None
            del kept
            younger = left()
            gc.collect()
            assert older() is not None
            assert younger() is None
        gc.collect()
    assert older() is None


def test_everything_is_searched_again_whatever_happens() -> None:
    with pytest.raises(KeyboardInterrupt), younger_only():
        raise KeyboardInterrupt
    assert gc.get_freeze_count() == 0
