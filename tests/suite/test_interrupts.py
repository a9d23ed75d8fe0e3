"""An interrupt that Python drops is repeated; other exceptions that it drops are reported."""

from __future__ import annotations

import signal
import sys
import time
import weakref
from collections.abc import Callable, Iterator

import pytest

from fixtures.suite.interrupts import AGAIN_AFTER_S, repeated_interrupts


class Storage:
    """Something that a weak reference may refer to."""


class Finalized:
    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Workers of pytest-xdist ignore the signal."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


def wait() -> None:
    """In short sleeps: what interrupts again does not end one."""
    for _ in range(100):
        time.sleep(AGAIN_AFTER_S / 5)


def then_wait(dropped: Callable[[], None]) -> None:
    dropped()
    wait()


def in_a_callback() -> None:
    storage = Storage()
    reference = weakref.ref(storage, lambda _: signal.raise_signal(signal.SIGINT))
    del storage
    assert reference() is None


def in_a_finalizer() -> None:
    Finalized()


@pytest.mark.parametrize("dropped", [in_a_callback, in_a_finalizer])
def test_a_dropped_interrupt_is_repeated(dropped: Callable[[], None]) -> None:
    with repeated_interrupts(), pytest.raises(KeyboardInterrupt):
        then_wait(dropped)


def test_it_is_repeated_until_it_is_heard() -> None:
    dropped: list[object] = []

    def drop(_: object) -> None:
        dropped.append(None)
        wait()

    def twice() -> None:
        in_a_callback()
        storage = Storage()
        reference = weakref.ref(storage, drop)
        del storage
        assert reference() is None

    with repeated_interrupts(), pytest.raises(KeyboardInterrupt):
        then_wait(twice)
    assert dropped


def test_without_it_python_drops_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[type[BaseException]] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: seen.append(told.exc_type))
    in_a_callback()
    wait()
    assert seen == [KeyboardInterrupt]


def test_other_exceptions_are_told_to_whoever_was_told_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[type[BaseException]] = []

    def before(told: sys.UnraisableHookArgs) -> None:
        seen.append(told.exc_type)

    def fail(_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(sys, "unraisablehook", before)
    with repeated_interrupts():
        storage = Storage()
        reference = weakref.ref(storage, fail)
        del storage
    assert seen == [ZeroDivisionError]
    assert reference() is None
    assert sys.unraisablehook is before
