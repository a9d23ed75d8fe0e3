"""The simulation is entered hundreds of times, each time after a search for garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="package")
def _searched_once() -> Iterator[None]:
    """Search what libraries made once: what was frozen stays so from test to test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "unfreeze", lambda: None)
        yield
    gc.unfreeze()
