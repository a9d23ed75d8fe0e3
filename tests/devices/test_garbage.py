"""Garbage is collected only where it is asked for."""

from __future__ import annotations

import gc

from fixtures.devices.garbage import collector_off


def test_the_collector_is_off_inside_and_as_before_after_that() -> None:
    assert gc.isenabled()
    with collector_off():
        assert not gc.isenabled()
        with collector_off():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
