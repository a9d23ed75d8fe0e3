"""Devices by capability: nobody outside of the room asks for a device's name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fixtures.catalogue.matrix import chosen_workloads
from fixtures.catalogue.workloads import default_workloads
from fixtures.devices import Device, kinds, open_device
from fixtures.devices.cpu import CpuDevice
from fixtures.devices.cuda import CudaDevice
from fixtures.devices.kinds import KINDS, device_name, find_kind
from fixtures.devices.needs import NEEDS
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.settings import REPOSITORY, Settings
from tests.devices.fake_cuda import FakeCuda
from tests.support.scenarios import find_scenario
from tests.test_settings import given_options

DEVICES: list[Device] = [CpuDevice(), CudaDevice(cuda=FakeCuda()), SimulatedDevice()]


ASKS = re.compile(rf"[=!]= [\"']({'|'.join(['auto', *KINDS])})[\"']")


def test_no_other_room_asks_for_the_name_of_a_device() -> None:
    assert ASKS.search('if name == "cuda":')
    paths = [*(REPOSITORY / "fixtures").rglob("*.py"), *(REPOSITORY / "perf_tests").glob("*.py")]
    asking = [
        str(path.relative_to(REPOSITORY))
        for path in [*paths, REPOSITORY / "conftest.py"]
        if "devices" not in path.parts and ASKS.search(path.read_text(encoding="utf-8"))
    ]
    assert asking == []


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.name)
def test_every_device_knows_every_need_and_no_other(device: Device) -> None:
    for need in NEEDS:
        reason = device.missing(need)  # type: ignore[arg-type]
        assert reason is None or len(reason) > 10
    with pytest.raises(ValueError, match="unknown need 'magic'"):
        device.missing("magic")  # type: ignore[arg-type]


class PocketDevice(SimulatedDevice):
    """A made-up device: it simulates, under a name and a key of its own."""

    name = "pocket"

    def __init__(self) -> None:
        super().__init__("rtx-3060")
        self.key = "pocket"


def test_a_device_is_a_class_and_a_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As CONTRIBUTING.md has it under "A new device"."""
    entry = kinds.DeviceKind(
        device_class=f"{__name__}:PocketDevice",
        memory_source="replay",
        default_workloads="storybook",
        is_there=lambda: True,
    )
    monkeypatch.setitem(KINDS, "pocket", entry)
    assert Settings.parse(given_options(perf_device="pocket")).chosen == "--perf-device pocket"
    assert device_name("auto") == "pocket"
    device = open_device("auto")
    assert (type(device), device.key, device.memory_source) == (PocketDevice, "pocket", "replay")
    assert chosen_workloads("pocket", ()) == default_workloads("cpu")
    scenario = find_scenario("storybook", "fp16")
    assert scenario.counted_steps("pocket") < scenario.counted_steps("simulated")
    assert find_kind("pocket").holds_two_pipelines
