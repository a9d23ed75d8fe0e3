"""What compiling a pipeline comes to: the calls of the series, and faults that it finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
import torch
from diffusers.models import attention
from torch import nn

from fixtures.catalogue.matrix import Scenario
from fixtures.catalogue.techniques import CATALOGUE
from fixtures.catalogue.workloads.twins import twin_of
from fixtures.devices import Device
from fixtures.devices.cpu import CpuDevice
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.metrics.compilation import METRIC
from fixtures.records.counts import BREAKS, FIRST, GRAPHS, GUARDS, RECOMPILATIONS, RUNS, Counts
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.worker.compilation import compilation_of, uncompiled
from tests.metrics.cases import case
from tests.support.runs import RECORDED, entry, scenario_record
from tests.support.scenarios import find_scenario

# Deprecations in a package under test are no failure.
pytestmark = pytest.mark.filterwarnings("default")
STORYBOOK = find_scenario("storybook", "torch_compile")
SERIES = (
    "again",
    "another prompt",
    "another number of steps",
    "a batch of two",
    "wider",
    "taller",
    "after offloading",
)


@pytest.fixture(scope="module")
def device() -> Device:
    return CpuDevice()


@pytest.fixture(scope="module")
def twin() -> Scenario:
    return Scenario(twin_of("sdxl"), CATALOGUE["torch_compile"])


def test_only_what_compiles_is_counted_and_only_on_the_host(device: Device) -> None:
    assert uncompiled(STORYBOOK, device) is None
    fp32 = find_scenario("storybook", "fp32")
    assert uncompiled(fp32, device) == "fp32 compiles nothing"
    simulated = find_scenario("sd15", "torch_compile")
    assert uncompiled(simulated, SimulatedDevice()) is not None
    with pytest.raises(ScenarioError, match="fp32 compiles nothing") as caught:
        compilation_of(fp32, device)
    assert caught.value.outcome is Outcome.UNSUPPORTED


def _failure(before: Counts, now: Counts) -> str:
    stored = replace(entry(), counts=before, compiled=RECORDED)
    (verdict,) = METRIC.judge(case(entry=stored), scenario_record("fp16", counts=now))
    assert verdict.outcome is Outcome.REGRESSION, verdict.sentence
    return verdict.sentence


@pytest.fixture(scope="module")
def sound(device: Device, twin: Scenario) -> Counts:
    return compilation_of(twin, device)


@pytest.mark.long
def test_the_series_is_counted_call_by_call_and_alike_when_repeated(
    device: Device, twin: Scenario, sound: Counts
) -> None:
    assert compilation_of(twin, device) == sound
    assert {*SERIES} == sound.by_name(RECOMPILATIONS).keys()
    assert {FIRST, *SERIES} == sound.by_name(BREAKS).keys() == sound.by_name(RUNS).keys()
    assert sound.total(GRAPHS) > 0 == sound.by_name(BREAKS)[FIRST]
    assert sound.by_name(RECOMPILATIONS)["a batch of two"] == 1
    (guard,) = (
        row.place for row in sound.rows if (row.kind, row.name) == (GUARDS, "a batch of two")
    )
    assert "size mismatch at index 0. expected 2, actual 4" in guard


def _patched(owner: Any, forward: Callable[..., Any]) -> Any:
    """The owner's forward, replaced by a function of the original one and its arguments."""
    original = owner.forward

    def replaced(self: Any, *arguments: Any, **options: Any) -> Any:
        return forward(original, self, *arguments, **options)

    return mock.patch.object(owner, "forward", replaced)


def _not_whole() -> Any:
    """Repeated blocks compiled as users do who do not ask for whole graphs."""
    compiled = nn.Module.compile
    return mock.patch.object(
        nn.Module, "compile", lambda self, **_: compiled(self, fullgraph=False)
    )


@pytest.mark.long
def test_each_fault_is_found_with_its_line(device: Device, twin: Scenario, sound: Counts) -> None:
    def breaks(original: Any, self: Any, *arguments: Any, **options: Any) -> Any:
        torch._dynamo.graph_break()
        return original(self, *arguments, **options)

    scale = {"of the prompt": 1.0}

    def depends(original: Any, self: Any, *arguments: Any, **options: Any) -> Any:
        return original(self, *arguments, **options) * scale["of the prompt"]

    def draw(self: Any, pipeline: Any, **options: Any) -> Any:
        scale["of the prompt"] = float(len(options.get("prompt", "")))
        return drawn(self, pipeline, **options)

    block, drawn = attention.BasicTransformerBlock, type(twin.workload).draw
    with _not_whole(), _patched(block, breaks):
        broken = compilation_of(twin, device)
    sentence = _failure(sound, broken)
    assert f"{BREAKS} ({FIRST}) 0 -> " in sentence
    assert "test_compilation.py:" in sentence
    with _patched(block, depends), mock.patch.object(type(twin.workload), "draw", draw):
        recompiled = compilation_of(twin, device)
    sentence = _failure(sound, recompiled)
    assert f"{RECOMPILATIONS} (another prompt) 0 -> 1 (+1): 0/" in sentence
    with _patched(block, breaks), pytest.raises(ScenarioError) as failure:
        compilation_of(twin, device)
    assert "raised GraphBreakError: the graph is to be whole, and breaks: " in failure.value.reason
    assert " at test_compilation.py:" in failure.value.reason
