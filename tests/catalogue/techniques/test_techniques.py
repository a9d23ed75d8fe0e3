"""Every technique: its activation check passes with it, fails without it, and leaving restores."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fixtures.catalogue import techniques
from fixtures.catalogue.matrix import scenarios
from fixtures.catalogue.techniques import CATALOGUE, MODULES
from fixtures.catalogue.techniques.registry import Wrapped, switched
from fixtures.catalogue.techniques.snapshots import DENOISER, Snapshot, record_snapshots
from fixtures.catalogue.techniques.technique import (
    ActivationContext,
    Technique,
    failing,
    missing_library,
)
from fixtures.catalogue.workloads import WORKLOADS, Workload
from fixtures.devices import Trace
from fixtures.devices.cpu import CpuDevice
from fixtures.devices.torch_settings import changed_since, one_thread, read_torch_settings
from fixtures.records.outcome import Reason, Remedy
from fixtures.records.software import installation
from tests.support.fake_device import FakeDevice
from tests.support.half_done import STEPS
from tests.support.offloads_to_itself import OffloadsToItself
from tests.support.simulated_runs import small

DEVICE = OffloadsToItself()
NEEDS_CUDA = frozenset({"cudnn", "tf32", "xformers", "streams"})
SIDE_PX = 32


@cache
def workload_of(kind: str) -> Workload:
    """As small as the kind allows: tiles need an image larger than one."""
    side_px = 128 if kind == "large" else SIDE_PX
    return small(width=side_px, height=side_px, steps=STEPS, batch=2 if kind == "batch" else 1)


def workload_for(technique: Technique) -> Workload:
    """The first one that it is settled for, or a small one of its kind."""
    if technique.settings:
        return WORKLOADS[next(iter(technique.settings))]
    return workload_of("single" if "single" in technique.kinds else technique.kinds[0])


def _runs_here(technique: Technique) -> bool:
    """Not what is settled for some workloads alone, of which the other files here are."""
    return (
        not NEEDS_CUDA & set(technique.needs)
        and not technique.missing_libraries
        and not technique.settings
        and not technique.on_request  # `test_half_done_compiled.py`
        # accelerate refuses to offload leaf by leaf from the CPU to the CPU.
        and not technique.id.startswith("sequential_cpu_offload")
    )


RUNNING = [
    # Compiling takes a minute.
    pytest.param(technique, id=technique.id, marks=[pytest.mark.long] * technique.compiled)
    for technique in CATALOGUE
    if _runs_here(technique)
]


@pytest.fixture(scope="module", autouse=True)
def on_one_thread() -> Iterator[None]:
    with one_thread():
        yield


def _draw_reference(workload: Workload) -> Any:
    with CATALOGUE["fp32"].applied(workload, DEVICE) as pipeline:
        return workload.draw(pipeline)


@cache
def reference_images(kind: str) -> Any:
    return _draw_reference(workload_of(kind))


@pytest.mark.parametrize("technique", RUNNING)
def test_a_technique_is_in_effect_and_leaving_it_restores_everything(technique: Technique) -> None:
    kind = "single" if "single" in technique.kinds else technique.kinds[0]
    workload = workload_of(kind)
    reference = reference_images(kind)
    applied = technique.applied(workload, DEVICE)
    before = read_torch_settings()
    with DEVICE.entered(), applied as pipeline:
        workload.draw(pipeline)
        with (
            record_snapshots(pipeline, DEVICE) as snapshots,
            DEVICE.observe(pipeline, compiled=technique.compiled) as trace,
        ):
            workload.draw(pipeline)
        context = ActivationContext(pipeline, trace, snapshots, workload, DEVICE)
        assert technique.activation_check(context) is None
    assert not changed_since(before)
    # The next reference is drawn to the bit as the one before: weights, kernels, flags.
    np.testing.assert_array_equal(_draw_reference(workload), reference)


@cache
def not_left(technique: str, workload: str) -> Any:
    """A pipeline with a technique; nobody draws with it, and nothing outlives it."""
    workloads = {workload_for(other).name: workload_for(other) for other in CATALOGUE}
    return next(CATALOGUE[technique].apply(workloads[workload], DEVICE))


@pytest.mark.parametrize("technique", list(CATALOGUE), ids=lambda technique: technique.id)
def test_the_activation_check_complains_where_the_technique_was_not_applied(
    technique: Technique,
) -> None:
    """By the pipeline as it stands and the switches of the process; no operation was counted."""
    workload = workload_for(technique)
    other = {"sdpa": "naive_attention", "fp32": "bf16"}.get(technique.id, "fp32")
    pipeline = not_left(other, workload.name)
    trace, snapshots = Trace(calls={"denoiser": 2}), [Snapshot(DENOISER, read_torch_settings())]
    context = ActivationContext(pipeline, trace, snapshots, workload, DEVICE)
    complaint = technique.activation_check(context)
    assert complaint
    assert "\n" not in complaint


def test_every_technique_names_its_document_and_claims_against_known_techniques() -> None:
    for technique in CATALOGUE:
        assert technique.document, technique.id
        assert technique.help.endswith("."), technique.id
        for claim in technique.claims:
            both = {*CATALOGUE[claim.than].kinds} & {*technique.kinds}
            assert both, f"{technique.id}: {claim} can be measured on no workload"


def test_every_module_that_declares_techniques_is_listed() -> None:
    files = Path(techniques.__file__).parent.glob("*.py")
    declares = re.compile(r"^    activation_check=", re.MULTILINE)
    assert {file.stem for file in files if declares.search(file.read_text("utf-8"))} == set(MODULES)


def test_what_skips_steps_is_timed_with_every_step() -> None:
    """A timed call of a few steps would leave nothing out, or another share of the work."""
    skipping = [scenario for scenario in scenarios(WORKLOADS) if scenario.technique.skips]
    assert {scenario.workload.timed_steps for scenario in skipping} == {None, 3}
    for scenario in skipping:
        assert scenario.steps_of_timed_call == scenario.workload.call.steps


def test_a_technique_with_settings_runs_where_it_has_some() -> None:
    technique = replace(CATALOGUE["sdpa"], settings={"storybook": {"depth": 3}})
    assert technique.applies_to(WORKLOADS["storybook"])
    assert not technique.applies_to(WORKLOADS["sd15"])
    assert replace(technique, settings={"": {"depth": 3}}).applies_to(WORKLOADS["sd15"])


def test_what_must_hold_for_all_fails_where_there_are_none() -> None:
    assert failing("layers are not cast", {"a": True, "b": True}) is None
    said = failing("layers are not cast", {"a": True, "b": False, "c": False})
    assert said == "2 of 3 layers are not cast, such as b"
    assert failing("layers are not cast", {}) == "0 of 0 layers are not cast"


@pytest.mark.parametrize("name", ["vae_slicing", "vae_tiling"])
def test_slicing_and_tiling_do_nothing_to_one_small_image(name: str) -> None:
    """The docs say so: 'no impact on one image', 'off at 512x512 and below'."""
    workload = workload_of("single")
    with CATALOGUE[name].applied(workload, DEVICE) as pipeline:
        with record_snapshots(pipeline, DEVICE) as snapshots:
            images = workload.draw(pipeline)
        context = ActivationContext(pipeline, Trace(calls={"vae": 1}), snapshots, workload, DEVICE)
        complaint = CATALOGUE[name].activation_check(context)
    np.testing.assert_array_equal(images, reference_images("single"))
    assert complaint is not None
    assert "one image alone" in complaint or "one tile covers 100% of the image" in complaint


def test_a_switch_is_put_back_even_if_the_call_raises() -> None:
    def fail() -> None:
        raise KeyError("inside")

    before = torch.backends.cudnn.benchmark
    call = Wrapped(fail, lambda: switched(torch.backends.cudnn, "benchmark", not before))
    with pytest.raises(KeyError):
        call()
    assert torch.backends.cudnn.benchmark is before


@pytest.mark.parametrize(
    ("installed", "reason"),
    [("0.32.2", "needs diffusers 0.33 or later, this is 0.32.2"), ("0.33.0.dev0", None)],
)
def test_an_older_diffusers_lacks_what_came_later(
    monkeypatch: pytest.MonkeyPatch, installed: str, reason: str | None
) -> None:
    versions = {"diffusers": installed}
    monkeypatch.setattr(
        "fixtures.catalogue.techniques.technique.software_versions", lambda: versions
    )
    assert CATALOGUE["layerwise_casting"].unsupported(CpuDevice()) == (
        Reason(reason) if reason else None
    )
    assert CATALOGUE["bf16"].unsupported(CpuDevice()) is None


@pytest.mark.parametrize(
    ("instruction_sets", "timed"),
    [
        (["avx2", "avx512f"], set()),
        (["avx2", "amx_bf16"], {"bf16", "autocast"}),
        (["avx2", "amx_fp16", "amx_bf16"], {"fp16", "bf16", "autocast"}),
        (["asimd", "asimdhp"], {"fp16"}),
    ],
)
def test_half_precision_runs_on_every_processor_and_is_timed_where_that_computes_in_it(
    instruction_sets: list[str], timed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = {"processor": "Testron 9000", "instruction_sets": instruction_sets}
    monkeypatch.setattr("fixtures.devices.cpu.processor", lambda: facts)
    device = CpuDevice()
    half = [CATALOGUE[name] for name in ("fp16", "bf16", "autocast")]
    assert {technique.unsupported(device) for technique in half} == {None}
    assert {technique.id for technique in half if technique.untimed(device) is None} == timed
    reasons = {technique.untimed(device) for technique in half} - {None}
    assert all("arithmetic; emulated speed is not mean" in str(reason) for reason in reasons)


def test_without_a_clock_nothing_is_timed() -> None:
    device = FakeDevice(lacks={"clock": "takes no time"})
    assert {technique.untimed(device) for technique in CATALOGUE} == {"takes no time"}


# Optional libraries


def test_an_installed_library_that_fits_is_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    upgrade = Remedy(installation("torchao", upgrade=True))
    for installed, reason in (
        ("0.14.1", Reason("needs torchao>=0.15, this is 0.14.1", upgrade)),
        ("0.15.0", None),
        ("0.19.0.dev20261101", None),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(metadata, "version", installed_versions(torchao=installed))
            assert missing_library("torchao>=0.15") == reason


def test_without_its_library_a_technique_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    libraries = ("torchao", "optimum-quanto", "gguf", "bitsandbytes", "peft", "tomesd", "DeepCache")
    monkeypatch.setattr(metadata, "version", installed_versions(**dict.fromkeys(libraries)))
    reasons = {each.unsupported(CpuDevice()) for each in CATALOGUE if each.libraries}
    assert reasons == {Reason(f"needs {name}", Remedy(installation(name))) for name in libraries}


def installed_versions(**versions: str | None) -> Callable[[str], str]:
    """What `metadata.version` says where these are installed, or not."""
    installed = metadata.version

    def version(name: str) -> str:
        release = versions[name] if name in versions else installed(name)
        if release is None:
            raise metadata.PackageNotFoundError(name)
        return release

    return version
