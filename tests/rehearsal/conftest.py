"""What the rehearsal's tests share."""

from __future__ import annotations

import pytest

from tests.rehearsal.commands import Machine


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """A machine with two cards."""
    return Machine(tmp_path_factory.mktemp("machine"))
