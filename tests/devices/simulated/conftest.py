"""What the tests of the simulation share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.devices.simulated.simulation import Simulation


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    """That of a device that is entered."""
    device = SimulatedDevice()
    with device.entered():
        assert device._simulation is not None
        yield device._simulation
