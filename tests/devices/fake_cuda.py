"""`torch.cuda` with an allocator that follows a script."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

GIB = 2**30


class FakeCuda:
    """`torch.cuda` as far as the device asks it.

    `requested` are live bytes as requested, `allocated` those of their blocks.
    """

    def __init__(
        self,
        name: str = "NVIDIA H200",
        memory: int = 139 * GIB,
        capability: tuple[int, int] = (9, 0),
    ) -> None:
        self.properties = SimpleNamespace(
            name=name,
            total_memory=memory,
            major=capability[0],
            minor=capability[1],
            multi_processor_count=132,
        )
        self.is_there = True
        self.log: list[str] = []
        self.requested = self.allocated = self.peak = 0
        self.workspace = 0

    def allocate(self, size: int, block: int | None = None) -> None:
        """Hand out a block, by default of the requested size."""
        self.requested += size
        self.allocated += size if block is None else block
        self.peak = max(self.peak, self.allocated)

    def free(self, size: int) -> None:
        """Take a block of this size back."""
        self.requested -= size
        self.allocated -= size

    def tensor(self, size: int) -> Tensor:
        """Allocate for as long as the result lives."""
        made = Tensor()
        self.allocate(size)
        weakref.finalize(made, self.free, size)
        return made

    def is_available(self) -> bool:
        return self.is_there

    def get_device_properties(self, index: int) -> Any:
        return self.properties

    def synchronize(self, index: int) -> None:
        self.log.append("synchronize")

    def memory_allocated(self, index: int) -> int:
        return self.allocated

    def memory_stats(self, index: int) -> Mapping[str, int]:
        return {"requested_bytes.all.current": self.requested}

    def max_memory_allocated(self, index: int) -> int:
        return self.peak

    def reset_peak_memory_stats(self, index: int) -> None:
        self.peak = self.allocated

    def empty_cache(self) -> None:
        self.log.append("empty_cache")

    def clear_workspaces(self) -> None:
        self.log.append("clear workspaces")
        self.free(self.workspace)
        self.workspace = 0


class Tensor:
    """Holds bytes of a fake device."""
