"""The host: versions and accelerators, found without importing anything."""

from __future__ import annotations

import ctypes
import platform
import subprocess
from collections.abc import Iterator
from importlib import metadata, util
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from fixtures.catalogue.techniques import CATALOGUE
from fixtures.devices.host import (
    OPTIONAL_PACKAGES,
    PACKAGES,
    commit,
    describe_hardware,
    has_cuda,
    processor,
    software_versions,
)
from tests.support.programs import printed


@pytest.fixture(autouse=True)
def nothing_cached() -> Iterator[None]:
    """What was found on a fake must not be remembered after it."""
    cached = (has_cuda, processor, software_versions)
    for function in cached:
        function.cache_clear()
    yield
    for function in cached:
        function.cache_clear()


# Software


def test_versions_are_read_without_importing_the_packages() -> None:
    program = (
        "import sys, fixtures.devices.kinds, fixtures.devices.needs; "
        "from fixtures.devices.host import software_versions, has_cuda; "
        "has_cuda(); print(software_versions()['torch'], "
        f"sorted(set({PACKAGES!r}) & set(sys.modules)))"
    )
    version, _, imported = printed(program).strip().partition(" ")
    assert version[0].isdigit()
    assert imported == "[]"


def test_a_package_that_is_not_there_is_absent_and_an_optional_one_is_not_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def version(package: str) -> str:
        if package == "xformers" or package in set(OPTIONAL_PACKAGES) - {"peft"}:
            raise metadata.PackageNotFoundError(package)
        return "1.2.3"

    monkeypatch.setattr(metadata, "version", version)
    versions = software_versions()
    assert versions["xformers"] == "absent"
    assert versions["torch"] == "1.2.3"
    assert set(versions) == {"python", "peft", *PACKAGES}


def test_what_a_technique_needs_is_named_among_the_software() -> None:
    wanted = {
        Requirement(library).name for technique in CATALOGUE for library in technique.libraries
    }
    assert wanted == set(OPTIONAL_PACKAGES)


def test_outside_of_git_the_commit_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: Any, **__: Any) -> None:
        raise FileNotFoundError("git")

    monkeypatch.setattr(subprocess, "run", absent)
    assert commit() == "unknown"


# Hardware


ON_X86 = """
model name\t: Testron 9000
cpu family\t: 25
model\t\t: 17
flags\t\t: fpu avx2 amx_bf16 avx512f

model name\t: another core
"""
ON_ARM = "processor\t: 0\nFeatures\t: fp asimd sve bf16 asimdhp\n"
UNNAMED = platform.processor() or platform.machine()


@pytest.mark.parametrize(
    ("cpuinfo", "name", "instruction_sets"),
    [
        (ON_X86.lstrip(), "Testron 9000 (family 25 model 17)", ["avx2", "avx512f", "amx_bf16"]),
        (ON_ARM, UNNAMED, ["asimd", "asimdhp", "bf16", "sve"]),
        ("", UNNAMED, []),
    ],
    ids=["x86", "ARM", "nothing"],
)
def test_the_processor_is_named_with_the_instruction_sets_that_matter(
    cpuinfo: str, name: str, instruction_sets: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "read_text", lambda path, **_: cpuinfo)
    facts = processor()
    assert (facts["processor"], facts["instruction_sets"]) == (name, instruction_sets)


def test_hardware_is_described_in_a_few_words() -> None:
    assert (
        describe_hardware({"processor": "EPYC", "instruction_sets": ["avx2"], "threads": 1})
        == "EPYC, avx2, 1 thread"
    )
    assert describe_hardware({"threads": 2}) == "2 threads"
    assert describe_hardware({"instruction_sets": []}) == "no instruction_sets"
    assert describe_hardware({"memory_gib": 140, "compute_capability": "9.0"}) == (
        "compute capability 9.0, 140 GiB"
    )


# Accelerators


class FakeDriver:
    """A CUDA driver with so many devices."""

    def __init__(self, devices: int, starts: int = 0, counts: int = 0) -> None:
        self.devices = devices
        self.starts = starts
        self.counts = counts

    def cuInit(self, _: int) -> int:  # noqa: N802 - the driver's own name
        return self.starts

    def cuDeviceGetCount(self, count: Any) -> int:  # noqa: N802 - the driver's own name
        count._obj.value = self.devices
        return self.counts


WORKING = FakeDriver(1)
CUDA_BUILD = "cuda: Optional[str] = '12.8'\n"


@pytest.mark.parametrize(
    ("version_file", "driver", "expected"),
    [
        (CUDA_BUILD, WORKING, True),
        ('cuda = "13.0"\n', WORKING, True),
        ("cuda: Optional[str] = None\n", WORKING, False),
        ("cuda_like = '1'\n", WORKING, False),
        (CUDA_BUILD, None, False),
        (CUDA_BUILD, FakeDriver(0), False),
        (CUDA_BUILD, FakeDriver(1, starts=100), False),
        (CUDA_BUILD, FakeDriver(1, counts=3), False),
    ],
)
def test_a_device_a_driver_and_a_torch_built_for_it_make_an_accelerator(
    version_file: str,
    driver: FakeDriver | None,
    expected: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The driver is None where it cannot be loaded."""

    def load(name: str) -> FakeDriver:
        if driver is None:
            raise OSError(f"{name}: cannot open shared object file")
        return driver

    (tmp_path / "version.py").write_text(version_file, encoding="utf-8")
    spec = ModuleSpec("torch", None, origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(util, "find_spec", lambda name: spec)
    monkeypatch.setattr(ctypes, "CDLL", load)
    assert has_cuda() is expected
    has_cuda.cache_clear()
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    assert not has_cuda(), "without torch"
