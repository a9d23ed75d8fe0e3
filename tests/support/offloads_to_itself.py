"""A CPU that stands in for an accelerator, so that offloading runs without one."""

from __future__ import annotations

from fixtures.devices.cpu import CpuDevice
from fixtures.devices.needs import Need


class OffloadsToItself(CpuDevice):
    """Claims to be an accelerator: hooks come and go, and nothing moves."""

    def missing(self, need: Need) -> str | None:
        """What the CPU lacks, but for the accelerator."""
        return None if need == "accelerator" else super().missing(need)
