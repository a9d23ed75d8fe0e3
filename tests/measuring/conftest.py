"""What tests of fake devices share."""

import gc

import pytest


@pytest.fixture
def no_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search for none: fakes leave none behind, and each search goes through all of torch."""
    monkeypatch.setattr(gc, "collect", lambda generation=2: 0)
