"""The CUDA driver and NVIDIA's management library, as far as the lane asks them.

They are called as C is, through ctypes: what is wrong with a name, or with an argument, shows.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from tests.rehearsal import machine
from tests.rehearsal.machine import HOT, UUIDS, processes_on, visible

SUCCESS, NOT_FOUND, INSUFFICIENT_SIZE = 0, 6, 7
THERMAL_SLOWDOWN = 0x20
PROCESS_BYTES = 2**30
ANSWERS: Mapping[str, tuple[int, ...]] = {
    "nvmlDeviceGetEnforcedPowerLimit": (700_000,),
    "nvmlDeviceGetMigMode": (0, 0),
    "nvmlDeviceGetEccMode": (1, 1),
}
"""What each question writes through its last pointers."""


class _Driver:
    """`libcuda.so.1`."""

    def cuInit(self, flags: int) -> int:  # noqa: N802
        return SUCCESS

    def cuDeviceGetCount(self, count: Any) -> int:  # noqa: N802
        count._obj.value = len(visible())
        return SUCCESS


class _Management:
    """`libnvidia-ml.so.1`: it sees every card of the machine, whatever a process may use."""

    def nvmlInitWithFlags(self, flags: int) -> int:  # noqa: N802
        return SUCCESS

    def nvmlSystemGetDriverVersion(self, text: Any, size: Any) -> int:  # noqa: N802
        text.value = b"580.65.06"
        return SUCCESS

    def nvmlDeviceGetHandleByUUID(self, uuid: Any, handle: Any) -> int:  # noqa: N802
        names = [f"GPU-{each}" for each in UUIDS]
        name = uuid.value.decode()
        if name not in names:
            return NOT_FOUND
        place = ctypes.cast(ctypes.pointer(handle._obj), ctypes.POINTER(ctypes.c_void_p))
        place.contents.value = 1 + names.index(name)
        return SUCCESS

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: Any, reasons: Any) -> int:  # noqa: N802
        reasons._obj.value = THERMAL_SLOWDOWN if HOT in os.environ else 0
        return SUCCESS

    def nvmlDeviceGetComputeRunningProcesses_v3(  # noqa: N802
        self, handle: Any, count: Any, processes: Any
    ) -> int:
        pids = processes_on(UUIDS[_number(handle)])
        room, count._obj.value = count._obj.value, len(pids)
        if pids and (processes is None or room < len(pids)):
            return INSUFFICIENT_SIZE
        for place, pid in enumerate(pids):
            processes[place].pid, processes[place].usedGpuMemory = pid, PROCESS_BYTES
        return SUCCESS

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name not in ANSWERS:
            raise AttributeError(name)

        def answer(*arguments: Any) -> int:
            values = ANSWERS[name]
            for pointer, value in zip(arguments[-len(values) :], values, strict=True):
                pointer._obj.value = value
            return SUCCESS

        return answer


def _number(handle: Any) -> int:
    """Of the card that a handle stands for: it is a pointer, and none of them is null."""
    return (ctypes.cast(handle, ctypes.c_void_p).value or 0) - 1


def put_under_host(host: ModuleType) -> None:
    """The driver where the suite asks for it without torch, and a torch that is built for it."""

    def library(name: str) -> Any:
        return _Driver() if name == "libcuda.so.1" else ctypes.CDLL(name)

    changed = SimpleNamespace(CDLL=library, c_int=ctypes.c_int, byref=ctypes.byref)
    host.ctypes = changed  # type: ignore[attr-defined]
    find_spec, version = host.util.find_spec, _version_file()

    def spec(name: str) -> Any:
        return SimpleNamespace(origin=str(version)) if name == "torch" else find_spec(name)

    host.util = SimpleNamespace(find_spec=spec)  # type: ignore[attr-defined]


def _version_file() -> Path:
    """As `torch/version.py` of a build for CUDA."""
    folder = machine.folder()
    (folder / "version.py").write_text("cuda: Optional[str] = '13.0'\n", encoding="utf-8")
    return folder / "__init__.py"


def put_under_pynvml(pynvml: ModuleType) -> None:
    """The management library under the Python package that calls it."""
    pynvml.CDLL = lambda name: _Management()  # type: ignore[attr-defined]
