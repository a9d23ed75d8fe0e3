"""The frozen reference: it draws what the fp32 pipeline draws, without the packages under test."""

from __future__ import annotations

import contextlib
import json
import shutil
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from fixtures.catalogue.workloads import WORKLOADS, WorkloadError
from fixtures.catalogue.workloads.storybook import CALL, FROZEN, PIPELINE_FOLDER
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.devices.torch_settings import one_thread
from fixtures.metrics.images import FROZEN_DIFFERENCE
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.worker import frozen as module
from fixtures.worker.frozen import CONFIGS, SOURCES, WEIGHTS, fingerprint
from fixtures.worker.frozen.program import FrozenProgram
from fixtures.worker.timed import FrozenOnAccelerator
from tests.support.differences import largest_difference
from tests.support.fake_device import FakeDevice
from tests.support.fake_scenarios import observations_on
from tests.support.programs import printed
from tests.support.scenarios import find_scenario

CPU = torch.device("cpu")
FP32 = find_scenario("storybook", "fp32")


@pytest.fixture(autouse=True, scope="module")
def as_measured() -> Iterator[None]:
    with one_thread():
        yield


# It draws what the pipeline draws


@pytest.mark.parametrize(("name", "batch"), [("storybook-batch8", 9), ("storybook-256", 1)])
def test_it_draws_to_the_last_bit_what_the_fp32_pipeline_draws(name: str, batch: int) -> None:
    """Of a batch the images have the prompts in turn, and after the last the first again."""
    workload = WORKLOADS[name]
    assert workload.frozen is not None
    frozen = FrozenProgram(workload.frozen, CPU).draw(replace(workload.call, batch=batch), 2)
    drawn = workload.draw(workload.load(torch.float32), steps=2, batch=batch)
    assert np.array_equal(frozen, drawn)


# It imports none of the packages under test


UNDER_TEST = ("accelerate", "diffusers", "transformers")
PROGRAM = f"""
import sys, torch
from fixtures.worker.frozen import fingerprint
from fixtures.worker.frozen.program import FrozenProgram
from fixtures.catalogue.workloads.storybook import CALL, FROZEN
FrozenProgram(FROZEN, torch.device('cpu')).draw(CALL, 1)
fingerprint(FROZEN.folder)
print([name for name in {UNDER_TEST!r} if name in sys.modules])
import accelerate
print([name for name in {UNDER_TEST!r} if name in sys.modules])
"""


def test_a_process_that_draws_loads_nothing_of_what_is_under_test() -> None:
    assert printed(PROGRAM).splitlines() == ["[]", "['accelerate']"]


# Memory


def places(program: FrozenProgram) -> list[int]:
    return [tensor.data_ptr() for part in program._tensors for tensor in part.values()]


def test_every_weight_moves_and_the_image_stays() -> None:
    program = FrozenProgram(FROZEN, CPU)
    before, drawn = places(program), program.draw(CALL, 1)
    assert places(program) == before, "drawing moves nothing"
    old = [weakref.ref(tensor) for part in program._tensors for tensor in part.values()]
    program.relocate()
    assert not set(before) & set(places(program))
    assert not any(reference() is not None for reference in old), "nothing computes with the old"
    assert np.array_equal(program.draw(CALL, 1), drawn)


# A damaged folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shutil.copytree(PIPELINE_FOLDER, tmp_path / "pipeline")


def _forget(path: Path, name: str) -> None:
    stored = json.loads(path.read_text())
    del stored[name]
    path.write_text(json.dumps(stored))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no value": lambda folder: _forget(folder / "scheduler/scheduler_config.json", "beta_end"),
    "truncated weights": lambda folder: (
        folder / "vae/diffusion_pytorch_model.safetensors"
    ).write_bytes(b"\x00" * 100),
    "other weights": lambda folder: shutil.copy(
        folder / "vae/diffusion_pytorch_model.safetensors",
        folder / "unet/diffusion_pytorch_model.safetensors",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_folder_leaves_nothing_to_compare_with(name: str, folder: Path) -> None:
    source = replace(FROZEN, folder=folder)
    FrozenProgram(source, CPU)
    DAMAGES[name](folder)
    scenario = replace(FP32, workload=replace(FP32.workload, frozen_source=source))
    with pytest.raises(ScenarioError) as caught:
        observations_on(FakeDevice()).frozen_images(scenario)
    assert caught.value.outcome is Outcome.NO_BASELINE
    said = f"storybook-fp32: the frozen reference cannot be read from {folder} ("
    assert str(caught.value).startswith(said)
    assert str(caught.value).endswith("; restore the folder")
    assert "\n" not in str(caught.value)


# The fingerprint


def test_the_fingerprint_is_of_configurations_and_weights_wherever_they_lie(folder: Path) -> None:
    before = fingerprint(PIPELINE_FOLDER)
    assert fingerprint.__wrapped__(folder) == before
    assert len(before) == 8
    assert int(before, 16) >= 0
    for path in (folder / part for part in (*CONFIGS, *WEIGHTS)):
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        assert fingerprint.__wrapped__(folder) != before
        path.write_bytes(content)
    assert fingerprint.__wrapped__(folder) == before
    shutil.rmtree(folder)
    with pytest.raises(WorkloadError, match="restore the folder"):
        fingerprint(folder)


def test_the_fingerprint_changes_with_every_module_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = fingerprint.__wrapped__(PIPELINE_FOLDER)
    copied = shutil.copytree(Path(module.__file__).parent, tmp_path / "frozen")
    monkeypatch.setattr(module, "PROGRAM", copied)
    assert {path.name for path in copied.glob("*.py")} - {"__init__.py"} == set(SOURCES)
    seen = {before}
    for name in SOURCES:
        assert fingerprint.__wrapped__(PIPELINE_FOLDER) in seen
        with (copied / name).open("a") as source:
            source.write("# slower\n")
        seen.add(fingerprint.__wrapped__(PIPELINE_FOLDER))
    assert len(seen) == 1 + len(SOURCES)


def test_on_an_accelerator_time_steps_come_to_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn by the simulated device, whose tensors have values and know no inference mode."""
    without = {True: torch.no_grad, False: contextlib.nullcontext}
    monkeypatch.setattr(torch, "inference_mode", lambda mode=True: without[mode]())
    device = SimulatedDevice(draws=True)
    with device.entered():
        program = FrozenOnAccelerator(FROZEN, device.torch_device)
        program.relocate()
        there = program.draw(CALL, 1)
        del program
    here = FrozenProgram(FROZEN, CPU).draw(CALL, 1)
    assert largest_difference(there, here) < FROZEN_DIFFERENCE
