"""Garbage is collected only where it is asked for."""

from __future__ import annotations

import gc

import pytest

from fixtures.devices.garbage import collector_off


def test_the_collector_is_off_inside_and_as_before_after_that_or_after_an_error() -> None:
    assert gc.isenabled()
    with pytest.raises(KeyError), collector_off():
        with collector_off():
            pass
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()
