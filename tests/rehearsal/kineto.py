"""What Kineto writes of a device, in the words of its traces: the simulation's own record.

The profiler and its trace of the host are real. Into the trace go a kernel for every operation that
the simulation ran on the device, its copies, and the host's waits, at the moments when they were
queued: Kineto's clock is the system's.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from fixtures.devices.simulated.simulation import Simulation

Seen = tuple[int, str, str, int]
"""When it was queued, in ns; category, name and bytes."""
_seen: list[Seen] = []


def watch(simulation: Simulation) -> None:
    """Keep what the simulation's meter counts, with the time."""
    meter = simulation.meter

    def watched(name: str, seen: Callable[..., tuple[str, str, int]]) -> None:
        count = getattr(meter, name)

        def counted(*arguments: Any, **options: Any) -> None:
            _seen.append((time.time_ns(), *seen(*arguments, **options)))
            count(*arguments, **options)

        setattr(meter, name, counted)

    watched("work", lambda kind, flops, moved: ("kernel", kind, 0))
    watched("copy", _copied)
    watched("sync", lambda why: ("cuda_runtime", _wait(why), 0))


def _copied(size_bytes: int, *, to_device: bool) -> tuple[str, str, int]:
    direction = "HtoD (Pageable -> Device)" if to_device else "DtoH (Device -> Pageable)"
    return "gpu_memcpy", f"Memcpy {direction}", size_bytes


def _wait(why: str) -> str:
    return "cudaDeviceSynchronize" if why == "synchronize" else "cudaStreamSynchronize"


def record() -> None:
    """Let the profiler know of the device."""
    activity = torch.profiler.ProfilerActivity
    everything = {activity.CPU, activity.CUDA}
    torch.profiler.supported_activities = lambda: everything
    torch.profiler.profile = _Profile  # type: ignore[assignment,misc]


class _Profile(torch.profiler.profile):
    """A profile of the host, whose trace shows the device as well."""

    def __init__(self, *, activities: Iterable[Any], **options: Any) -> None:
        self._of_device = torch.profiler.ProfilerActivity.CUDA in activities
        super().__init__(activities=[torch.profiler.ProfilerActivity.CPU], **options)

    def __enter__(self) -> _Profile:
        _seen.clear()
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def export_chrome_trace(self, path: str, *options: Any, **named: Any) -> None:
        super().export_chrome_trace(path, *options, **named)
        if not self._of_device:
            return
        trace = json.loads(Path(path).read_text(encoding="utf-8", errors="replace"))
        base_ns = trace["baseTimeNanoseconds"]
        trace["traceEvents"] += [_event(seen, base_ns) for seen in _seen]
        Path(path).write_text(json.dumps(trace), encoding="utf-8")


def _event(seen: Seen, base_ns: int) -> Mapping[str, Any]:
    at_ns, category, name, size_bytes = seen
    event = SimpleNamespace(
        ph="X", cat=category, name=name, ts=(at_ns - base_ns) / 1e3, dur=1.0, args={}
    )
    if size_bytes:
        event.args["bytes"] = size_bytes
    return vars(event)
