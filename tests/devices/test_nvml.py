"""The GPU's own evidence, from a management library that follows a script."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.devices import family
from fixtures.devices.nvml import (
    DISTURBING,
    LOWERING,
    MOMENTS_ONLY,
    POWER,
    POWER_CAP,
    GpuWatch,
    Nvml,
    find_nvml,
)


class FakeNvml:
    """`pynvml` as far as it is asked; a question that is not in `answers` is not supported.

    `fields` and `policies` are for how long each cause has lowered the clocks, as newer and as
    older drivers tell it.
    """

    NVML_CLOCK_SM = 1
    NVML_TEMPERATURE_GPU = 0

    class NVMLError(Exception):
        pass

    def __init__(self, **answers: Any) -> None:
        self.reasons = 0
        self.processes: list[int] = [os.getpid()]
        self.fields: dict[str, int] = {}
        self.policies = {cause: 5 for cause in (*LOWERING, POWER) if cause.startswith("PERF")}
        self.answers = {
            "nvmlDeviceGetClockInfo": 1980,
            "nvmlDeviceGetTemperature": 61,
            "nvmlDeviceGetPowerUsage": 412_300,
            "nvmlDeviceGetEnforcedPowerLimit": 700_000,
            "nvmlDeviceGetMigMode": [0, 0],
            "nvmlDeviceGetEccMode": [1, 1],
            "nvmlDeviceGetCurrPcieLinkGeneration": 5,
            "nvmlDeviceGetCurrPcieLinkWidth": 16,
            **answers,
        }
        self.bits = {name: 1 << place for place, name in enumerate((*DISTURBING, POWER_CAP))}
        for number, cause in enumerate((*LOWERING, POWER)):
            self.bits[f"NVML_FI_DEV_{cause}"] = number
            if cause in self.policies:
                self.bits[f"NVML_{cause}"] = number

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
        causes = (*LOWERING, POWER)
        return [
            SimpleNamespace(
                fieldId=field,
                nvmlReturn=0 if causes[field] in self.fields else 3,
                value=SimpleNamespace(ullVal=self.fields.get(causes[field], 0)),
            )
            for field in fields
        ]

    def nvmlDeviceGetViolationStatus(self, handle: str, policy: int) -> Any:  # noqa: N802
        cause = (*LOWERING, POWER)[policy]
        if cause not in self.policies:
            raise self.NVMLError(cause)
        return SimpleNamespace(violationTime=self.policies[cause])

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("bits", {}):
            return self.bits[name]
        if name in self.__dict__.get("answers", {}):
            return lambda handle, *_: self.answers[name]
        raise AttributeError(name)


@pytest.fixture(autouse=True)
def no_family(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {**os.environ, family.FIRST: str(os.getpid())})


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
    assert nvml.surroundings == "driver 580.65, PCIe 5 x16"
    library.answers.clear()
    library.policies.clear()
    bare = Nvml("1234", library)
    assert bare.facts == {}
    assert bare.surroundings == f"driver 580.65, {MOMENTS_ONLY}"
    assert bare.read().sm_clock_mhz == 0
    library.reasons = library.bits["nvmlClocksEventReasonHwSlowdown"]
    assert bare.read().disturbance == "the hardware throttled it"


def test_a_device_is_disturbed_by_throttling_and_not_by_its_power_cap(
    nvml: Nvml, library: FakeNvml
) -> None:
    reading = nvml.read()
    assert (reading.sm_clock_mhz, reading.temperature_c, reading.power_w) == (1980, 61, 412.3)
    assert (reading.power_capped, reading.disturbance) == (False, None)
    library.reasons = library.bits[POWER_CAP]
    reading = nvml.read()
    assert (reading.power_capped, reading.disturbance) == (True, None)
    for reason, words in DISTURBING.items():
        library.reasons = library.bits[reason]
        assert nvml.read().disturbance == words


OWN = os.getpid()


@pytest.mark.parametrize(
    ("family_members", "ours", "processes", "disturbance"),
    [
        ([OWN], [], [], None),
        ([OWN], [], [OWN], None),
        ([OWN], [], [OWN, 2], "another process used it"),
        ([OWN], [], [OWN, 2, 3], "2 other processes used it"),
        ([OWN, 2], [], [OWN, 2], None),
        ([OWN, 2], [], [OWN, 2, 3], "another process used it"),
        # In a container, whose driver numbers processes as the host does.
        ([OWN], [7], [7], None),
        ([OWN], [7], [7, 8], "another process used it"),
        ([OWN, 2], [7, 8], [7, 8], None),
        ([OWN, 2], [7, 8], [7, 8, 9], "another process used it"),
    ],
)
def test_processes_of_other_runs_disturb(
    family_members: list[int],
    ours: list[int],
    processes: list[int],
    disturbance: str | None,
    nvml: Nvml,
    library: FakeNvml,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`ours` are those that are there when the device is first read."""
    monkeypatch.setattr(family, "is_member", family_members.__contains__)
    monkeypatch.setattr(family, "size", lambda: len(family_members))
    library.processes = ours
    assert nvml.read().disturbance is None
    library.processes = processes
    assert nvml.read().disturbance == disturbance


def test_a_watch_gives_the_range_of_what_it_saw(nvml: Nvml, library: FakeNvml) -> None:
    watch = GpuWatch(nvml.read, nvml.surroundings)
    assert watch.sentence() == "driver 580.65, PCIe 5 x16"
    assert watch.disturbance() is None
    library.answers["nvmlDeviceGetClockInfo"] = 1200
    library.answers["nvmlDeviceGetTemperature"] = 90
    library.reasons = library.bits[POWER_CAP]
    assert watch.disturbance() is None
    assert watch.sentence() == (
        "SM clock 1,200 to 1,980 MHz, at most 90 °C and 412 W, at the power cap in 50% of the "
        "readings, driver 580.65, PCIe 5 x16"
    )


@pytest.mark.parametrize(
    ("cause", "counted_as"),
    [
        *((cause, "fields") for cause in LOWERING),
        *((cause, "policies") for cause in LOWERING if cause.startswith("PERF")),
    ],
)
def test_a_throttling_that_ended_within_the_round_is_seen(
    cause: str, counted_as: str, library: FakeNvml
) -> None:
    counters: dict[str, int] = getattr(library, counted_as)
    counters[cause] = 5
    watch = GpuWatch(Nvml("1234", library).read)
    assert watch.disturbance() is None, "what was before the watch"
    counters[cause] += 1_000_000
    assert watch.disturbance() == LOWERING[cause]
    assert watch.disturbance() is None


def test_the_same_throttling_is_named_once_and_a_power_cap_that_ended_is_none(
    nvml: Nvml, library: FakeNvml
) -> None:
    hot = "CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN"
    library.fields[hot] = 0
    assert nvml.read().disturbance is None, "a counter that was not there before has not grown"
    library.fields[hot] += 1
    library.policies["PERF_POLICY_THERMAL"] += 1
    library.reasons = library.bits["nvmlClocksEventReasonSwThermalSlowdown"]
    assert nvml.read().disturbance == LOWERING[hot]
    library.reasons = 0
    library.policies[POWER] += 1
    readings = [nvml.read() for _ in range(2)]
    assert [reading.power_capped for reading in readings] == [True, False]
    assert [reading.disturbance for reading in readings] == [None, None]


def test_the_clock_is_that_of_the_round_and_not_of_the_moment_after(
    nvml: Nvml, library: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = [
        SimpleNamespace(timeStamp=at, sampleValue=SimpleNamespace(uiVal=mhz))
        for at, mhz in ((7, 1410), (9, 1980), (8, 1755))
    ]
    asked_since = []
    library.bits["NVML_PROCESSOR_CLK_SAMPLES"] = 4

    def get_samples(handle: str, kind: int, since: int) -> tuple[int, list[Any]]:
        asked_since.append(since)
        return 0, [one for one in samples if one.timeStamp > since]

    monkeypatch.setattr(library, "nvmlDeviceGetSamples", get_samples, raising=False)
    assert [nvml.read().sm_clock_mhz for _ in range(2)] == [1755, 1980]
    assert asked_since == [0, 9]


def test_an_unknown_device_or_a_missing_driver_gives_no_evidence(library: FakeNvml) -> None:
    with pytest.raises(FakeNvml.NVMLError):
        Nvml("none", library)
    assert find_nvml("no such device") is None
