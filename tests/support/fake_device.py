"""A device on which nothing runs: every figure, its clock and what it lacks are the test's."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fixtures.devices import Trace, Watch
from fixtures.devices.needs import Need, reason_for
from fixtures.records.counts import Counts
from fixtures.records.run import WHOLE
from fixtures.records.units import MemorySource
from tests.support.counting import counts

if TYPE_CHECKING:
    import torch
    from typing_extensions import Self


def _trace() -> Trace:
    return Trace(component_peak_bytes={WHOLE: 1000}, counts=counts(mm=3))


@dataclass
class FakeDevice:
    """Has everything but what `lacks` names, with the reason.

    `trace` is what every observed call shows, `counted` what a counting call does. The clock says
    `now_s`, which only the test moves, and each randomisation of a layout by `layout_s`; what was
    asked of the device is kept in `synchronised` and `laid_out`.
    """

    name: str = "cpu"
    key: str = "fake"
    caveat: str = ""
    memory_source: MemorySource = "ledger"
    warms_up: bool = False
    steady_clock: bool = False
    shares_core: bool = False
    keeps_memory: bool = False
    memory_bytes: float = math.inf
    hardware: Mapping[str, Any] = field(default_factory=lambda: {"processor": "Testron 9000"})
    lacks: Mapping[Any, str] = field(default_factory=dict)
    trace: Trace = field(default_factory=_trace)
    counted: Counts = field(default_factory=Counts)
    watching: Watch = field(default_factory=Watch)
    layout_s: float = 0.0
    now_s: float = 0.0
    synchronised: int = 0
    laid_out: list[Any] = field(default_factory=list)

    @property
    def torch_device(self) -> torch.device:
        """The CPU, where tensors can really go."""
        import torch

        return torch.device("cpu")

    @property
    def base_dtype(self) -> torch.dtype:
        """fp32."""
        import torch

        return torch.float32

    @property
    def half_dtype(self) -> torch.dtype:
        """bf16."""
        import torch

        return torch.bfloat16

    def missing(self, need: Need) -> str | None:
        """The reason that the test gave."""
        return reason_for(need, self.lacks)

    def with_values(self) -> Self:
        """Itself."""
        return self

    def entered(self) -> contextlib.AbstractContextManager[None]:
        """Everywhere."""
        return contextlib.nullcontext()

    def observed_steps(self, steps: int, telling: int) -> int:
        """All of them."""
        return steps

    def synchronize(self) -> None:
        """Nothing is queued; it is noted."""
        self.synchronised += 1

    def clock_s(self) -> float:
        """The clock that the test moves."""
        return self.now_s

    def watch(self) -> Watch:
        """The watch that the test gave."""
        return self.watching

    def randomise_layout(self, pipeline: Any | None) -> None:
        """It takes its time, and is noted."""
        self.now_s += self.layout_s
        self.laid_out.append(pipeline)

    def ieee_fp32(self) -> contextlib.AbstractContextManager[None]:
        """Nothing is switched."""
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def observe(self, pipeline: Any, *, compiled: bool = False) -> Iterator[Trace]:
        """What runs inside shows what the test says."""
        yield replace(self.trace)

    def count(self, call: Callable[[], object]) -> Counts:
        """Make the call; it does what the test says."""
        call()
        return self.counted

    def cards(self) -> None:
        """Nothing tells."""

    def release(self) -> None:
        """Nothing is held."""
