"""The GPU's own evidence, from a management library that follows a script."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.devices import nvml as module
from fixtures.devices.nvml import (
    COUNTERS,
    FIRST_PROCESS,
    POWER_CAP,
    POWER_COUNTER,
    REASONS,
    GpuWatch,
    Nvml,
    find_nvml,
    is_ours,
)

FIELDS = (*COUNTERS, POWER_COUNTER)


class FakeNvml:
    """`pynvml` as far as it is asked; a question that is not in `answers` is not supported.

    `fields` are for how long each cause has lowered the clocks.
    """

    class NVMLError(Exception):
        pass

    def __init__(self, **answers: Any) -> None:
        self.reasons = 0
        self.processes: list[int] = [os.getpid()]
        self.fields: dict[str, int] = {}
        self.answers = {
            "nvmlDeviceGetEnforcedPowerLimit": 700_000,
            "nvmlDeviceGetMigMode": [0, 0],
            "nvmlDeviceGetEccMode": [1, 1],
            **answers,
        }
        self.bits = {name: 1 << place for place, name in enumerate((*REASONS, POWER_CAP))}
        self.bits |= {name: number for number, name in enumerate(FIELDS)}

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

    def nvmlDeviceGetFieldValues(self, handle: str, fields: list[int]) -> list[Any]:  # noqa: N802
        return [
            SimpleNamespace(
                fieldId=field,
                nvmlReturn=0 if FIELDS[field] in self.fields else 3,
                value=SimpleNamespace(ullVal=self.fields.get(FIELDS[field], 0)),
            )
            for field in fields
        ]

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
    assert nvml.driver == "580.65"
    library.answers.clear()
    bare = Nvml("1234", library)
    assert bare.facts == {}
    assert bare.read() == (None, False)
    library.reasons = library.bits["nvmlClocksEventReasonHwSlowdown"]
    assert bare.read() == ("the hardware throttled it", False)


def test_a_device_is_disturbed_by_throttling_and_not_by_its_power_cap(
    nvml: Nvml, library: FakeNvml
) -> None:
    assert nvml.read() == (None, False)
    library.reasons = library.bits[POWER_CAP]
    assert nvml.read() == (None, True)
    for reason, words in REASONS.items():
        library.reasons = library.bits[reason]
        assert nvml.read() == (words, False)


OWN = os.getpid()


@pytest.mark.parametrize(
    ("ours", "processes", "disturbance"),
    [
        ([OWN], [], None),
        ([OWN], [OWN], None),
        ([OWN], [OWN, 2], "another process used it"),
        ([OWN], [OWN, 2, 3], "2 other processes used it"),
        ([OWN, 2], [OWN, 2], None),
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
    assert nvml.read() == (disturbance, False)


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


def test_a_watch_says_how_often_the_power_cap_was_met(nvml: Nvml, library: FakeNvml) -> None:
    watch = GpuWatch(nvml)
    assert watch.sentence() == "driver 580.65"
    assert watch.disturbance() is None
    library.reasons = library.bits[POWER_CAP]
    assert watch.disturbance() is None
    assert watch.sentence() == "driver 580.65, at the power cap in 50% of the rounds"


@pytest.mark.parametrize("cause", COUNTERS)
def test_a_throttling_that_ended_within_the_round_is_seen(cause: str, library: FakeNvml) -> None:
    library.fields[cause] = 5
    watch = GpuWatch(Nvml("1234", library))
    assert watch.disturbance() is None, "what was before the watch"
    library.fields[cause] += 1_000_000
    assert watch.disturbance() == COUNTERS[cause]
    assert watch.disturbance() is None


def test_the_same_throttling_is_named_once_and_a_power_cap_that_ended_is_none(
    nvml: Nvml, library: FakeNvml
) -> None:
    hot = "NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN"
    library.fields |= dict.fromkeys((hot, "NVML_FI_DEV_PERF_POLICY_THERMAL", POWER_COUNTER), 0)
    assert nvml.read() == (None, False), "a counter that was not there before has not grown"
    library.fields[hot] += 1
    library.fields["NVML_FI_DEV_PERF_POLICY_THERMAL"] += 1
    library.reasons = library.bits["nvmlClocksEventReasonSwThermalSlowdown"]
    assert nvml.read() == (COUNTERS[hot], False)
    library.reasons = 0
    library.fields[POWER_COUNTER] += 1
    assert [nvml.read() for _ in range(2)] == [(None, True), (None, False)]


def test_an_unknown_device_or_a_missing_driver_gives_no_evidence(library: FakeNvml) -> None:
    with pytest.raises(FakeNvml.NVMLError):
        Nvml("none", library)
    assert find_nvml("no such device") is None
