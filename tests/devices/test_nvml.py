"""The GPU's own evidence, from a management library that follows a script."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.devices import nvml as module
from fixtures.devices.nvml import FIRST_PROCESS, REASONS, Nvml, find_nvml, is_ours


class FakeNvml:
    """`pynvml` as far as it is asked; a question that is not in `answers` is not supported."""

    class NVMLError(Exception):
        pass

    def __init__(self, **answers: Any) -> None:
        self.reasons = 0
        self.processes: list[int] = [os.getpid()]
        self.answers = {
            "nvmlDeviceGetEnforcedPowerLimit": 700_000,
            "nvmlDeviceGetMigMode": [0, 0],
            "nvmlDeviceGetEccMode": [1, 1],
            **answers,
        }
        self.bits = {name: 1 << place for place, name in enumerate(REASONS)}

    def nvmlInit(self) -> None:  # noqa: N802
        """Ready."""

    def nvmlSystemGetDriverVersion(self) -> bytes:  # noqa: N802
        return b"580.65"

    def nvmlDeviceGetHandleByUUID(self, name: str) -> str:  # noqa: N802
        if name != "GPU-1234":
            raise self.NVMLError(name)
        return name

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: str) -> int:  # noqa: N802
        return self.reasons

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[Any]:  # noqa: N802
        return [SimpleNamespace(pid=pid) for pid in self.processes]

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("bits", {}):
            return self.bits[name]
        if name in self.__dict__.get("answers", {}):
            return lambda handle, *_: self.answers[name]
        raise AttributeError(name)


@pytest.fixture(autouse=True)
def first_of_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {**os.environ, FIRST_PROCESS: str(os.getpid())})


@pytest.fixture
def library() -> FakeNvml:
    return FakeNvml()


@pytest.fixture
def nvml(library: FakeNvml) -> Nvml:
    return Nvml("1234", library)


def test_facts_are_those_that_the_name_leaves_open_and_that_a_device_reports(
    nvml: Nvml, library: FakeNvml
) -> None:
    assert nvml.facts == {"power_limit_w": 700, "mig": False, "ecc": True}
    library.answers.clear()
    assert Nvml("1234", library).facts == {}


OWN = os.getpid()


@pytest.mark.parametrize(
    ("ours", "processes", "disturbance"),
    [
        ([OWN], [], None),
        ([OWN], [OWN, 2, 3], "2 other processes used it"),
        ([OWN, 2], [OWN, 2, 3], "another process used it"),
        # In a container, whose driver numbers processes as the host does.
        ([OWN], [7, 8], None),
    ],
)
def test_processes_of_other_runs_disturb(
    ours: list[int],
    processes: list[int],
    disturbance: str | None,
    nvml: Nvml,
    library: FakeNvml,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "is_ours", ours.__contains__)
    library.processes = processes
    assert nvml.disturbance() == disturbance


def test_what_the_first_process_starts_is_of_its_run_while_it_lives() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert is_ours(OWN)
        assert is_ours(child.pid)
        assert not is_ours(os.getppid())
        os.environ[FIRST_PROCESS] = str(child.pid)
        assert is_ours(child.pid)
        assert not is_ours(OWN)
        child.kill()
    assert not is_ours(child.pid)


def test_what_throttles_disturbs_and_the_driver_is_named(nvml: Nvml, library: FakeNvml) -> None:
    assert nvml.sentence() == "driver 580.65"
    for reason, words in {"": None, **REASONS}.items():
        library.reasons = library.bits.get(reason, 0)
        assert nvml.disturbance() == words


def test_an_unknown_device_or_a_missing_driver_gives_no_evidence(library: FakeNvml) -> None:
    with pytest.raises(FakeNvml.NVMLError):
        Nvml("none", library)
    assert find_nvml("no such device") is None
