"""Garbage is collected only where it is asked for."""

from __future__ import annotations

import gc

import pytest

from fixtures.devices.garbage import collector_off
from fixtures.devices.ledger import StorageLedger


def test_the_collector_is_off_inside_and_as_before_after_that_or_after_an_error() -> None:
    assert gc.isenabled()
    with collector_off():
        assert not gc.isenabled()
        with collector_off():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(KeyError, match="False"), StorageLedger():
        raise KeyError(gc.isenabled())
    assert gc.isenabled()
