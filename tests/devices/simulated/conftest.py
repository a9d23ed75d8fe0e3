"""The simulation is entered hundreds of times, each time after a search for garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.devices.simulated.simulation import Simulation


@pytest.fixture(autouse=True, scope="package")
def _searched_once() -> Iterator[None]:
    """Search what libraries made once: what was frozen stays so from test to test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "unfreeze", lambda: None)
        yield
    gc.unfreeze()


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    """That of a device that is entered."""
    device = SimulatedDevice()
    with device.entered():
        assert device._simulation is not None
        yield device._simulation
