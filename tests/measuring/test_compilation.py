"""What compiling a pipeline comes to: the calls of the series, and faults that it finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
import torch
from diffusers.models import activations, attention
from torch import nn

from fixtures.devices import Device
from fixtures.devices.cpu import CpuDevice
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.measuring import compilation
from fixtures.measuring.compilation import compilation_of, put_compilation, uncompiled
from fixtures.metrics.compilation import judge_compilation
from fixtures.records.compilation import (
    BREAKS,
    GRAPHS,
    RECOMPILATIONS,
    RUNS,
    Compilation,
    of_call,
)
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.records.run import ScenarioRecord
from fixtures.scenarios import Scenario, find_scenario
from fixtures.techniques import CATALOGUE
from fixtures.workloads.twins import twin_of
from tests.metrics.cases import case
from tests.support.runs import entry

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
    record = ScenarioRecord(fp32.id, "storybook", "fp32", "precision")
    put_compilation(record, fp32, device)
    assert (record.compilation, record.not_compiled) == (None, "fp32 compiles nothing")
    failure = ScenarioError(fp32.id, Outcome.BROKEN, "raised KeyError")
    with (
        mock.patch.object(compilation, "compilation_of", side_effect=failure),
        pytest.raises(ScenarioError),
    ):
        put_compilation(record, fp32, device)


def _failure(before: Compilation, now: Compilation) -> str:
    stored = replace(entry(), compilation=replace(before, relative=(1e9,)))
    verdict = judge_compilation(case(entry=stored), now)[0]
    assert verdict.outcome is Outcome.REGRESSION, verdict.sentence
    return verdict.sentence


@pytest.fixture(scope="module")
def sound(device: Device, twin: Scenario) -> Compilation:
    return compilation_of(twin, device)


@pytest.mark.long
def test_the_series_is_counted_call_by_call_and_alike_when_repeated(
    device: Device, twin: Scenario, sound: Compilation
) -> None:
    again = compilation_of(twin, device)
    assert (again.counts, again.causes) == (sound.counts, sound.causes)
    calls = {of_call(name, call) for name in (RECOMPILATIONS, BREAKS, RUNS) for call in SERIES}
    assert calls < sound.counts.keys()
    assert sound.counts[GRAPHS] > 0 == sound.counts[BREAKS]
    assert sound.counts[of_call(RECOMPILATIONS, "a batch of two")] == 1
    (guard,) = sound.causes[of_call(RECOMPILATIONS, "a batch of two")]
    assert "size mismatch at index 0. expected 2, actual 4" in guard
    assert 0 < sound.first_call_s < 60 * again.first_call_s


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


@torch.library.custom_op("perf_tests::opaque", mutates_args=())
def opaque(values: torch.Tensor) -> torch.Tensor:
    return values.clone()


@opaque.register_fake
def _(values: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(values)


@pytest.mark.long
def test_each_fault_is_found_with_its_line(
    device: Device, twin: Scenario, sound: Compilation
) -> None:
    def breaks(original: Any, self: Any, *arguments: Any, **options: Any) -> Any:
        torch._dynamo.graph_break()
        return original(self, *arguments, **options)

    def loses_a_fusion(original: Any, self: Any, *arguments: Any, **options: Any) -> Any:
        return opaque(original(self, *arguments, **options))

    scale = {"of the prompt": 1.0}

    def depends(original: Any, self: Any, *arguments: Any, **options: Any) -> Any:
        return original(self, *arguments, **options) * scale["of the prompt"]

    def draw(self: Any, pipeline: Any, **options: Any) -> Any:
        scale["of the prompt"] = float(len(options.get("prompt", "")))
        return drawn(self, pipeline, **options)

    block, drawn = attention.BasicTransformerBlock, type(twin.workload).draw
    with _patched(activations.GEGLU, loses_a_fusion):
        unfused = compilation_of(twin, device)
    assert "extern calls " in _failure(sound, unfused)
    with _not_whole(), _patched(block, breaks):
        broken = compilation_of(twin, device)
    sentence = _failure(sound, broken)
    assert "graph breaks 0 -> " in sentence
    assert "test_compilation.py:" in sentence
    with _patched(block, depends), mock.patch.object(type(twin.workload), "draw", draw):
        recompiled = compilation_of(twin, device)
    sentence = _failure(sound, recompiled)
    assert f"{of_call(RECOMPILATIONS, 'another prompt')} 0 -> 1 (0/" in sentence
    with _not_whole(), torch._dynamo.config.patch(recompile_limit=2):
        eager = compilation_of(twin, device)
    assert f"{of_call(RUNS, 'a batch of two')} 22 -> " in _failure(sound, eager)
    with _patched(block, breaks), pytest.raises(ScenarioError) as failure:
        compilation_of(twin, device)
    assert "raised GraphBreakError: the graph is to be whole, and breaks: " in failure.value.reason
    assert " at test_compilation.py:" in failure.value.reason
