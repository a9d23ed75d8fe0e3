"""What is compiled in part, by another back end, or for nothing is not in effect.

Graphs are captured and run as they were: inductor would take minutes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any

import pytest
import torch
from torch._dynamo.eval_frame import _debug_get_cache_entry_list
from torch.fx.experimental import _config

from fixtures.devices.compilation import CompilationCounter, compilation_counter
from fixtures.devices.cpu import CpuDevice
from fixtures.devices.phases import denoiser
from fixtures.devices.torch_settings import one_thread
from fixtures.records.compilation import RUNS
from fixtures.techniques import CATALOGUE, adapters, compiling
from fixtures.techniques.compiled_runs import CALL
from fixtures.techniques.placement import LEAF, check_group_offload
from fixtures.techniques.registry import all_of, models
from fixtures.workloads import Workload
from fixtures.workloads.twins import twin_of
from tests.support.half_done import HalfDone, Spoil, complaint, nothing
from tests.support.libraries import skipped_without_libraries
from tests.support.offloads_to_itself import OffloadsToItself

CPU = CpuDevice()
DYNAMO = torch._dynamo.config
BLOCKS, WHOLE, DYNAMIC = "torch_compile", "torch_compile_whole", "torch_compile_dynamic"
OFFLOADED = "torch_compile_group_offload"
INT8, SWAPPED = "torch_compile_torchao_int8", "torch_compile_lora_hotswap"
WITH_PEFT = skipped_without_libraries(CATALOGUE[SWAPPED])
IN_PLACE = partial(compiling.offloaded_and_compiled, stream=False)


@cache
def workload_of() -> Workload:
    return twin_of("flux")


@pytest.fixture(autouse=True)
def counter() -> Iterator[CompilationCounter]:
    with one_thread(), compilation_counter(lowers=False) as counter:
        yield counter


@pytest.fixture(autouse=True)
def without_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU has none to copy on."""
    check = all_of(partial(check_group_offload, LEAF), compiling.layers_run_compiled)
    offloaded = replace(CATALOGUE[OFFLOADED], apply=IN_PLACE, activation_check=check)
    monkeypatch.setitem(CATALOGUE.techniques, OFFLOADED, offloaded)


# Spoilt


def blocks(pipeline: Any) -> list[Any]:
    return [owner for owner, _ in compiling.blocks_of(pipeline)]


def whole(pipeline: Any) -> list[Any]:
    return [denoiser(pipeline)]


def first_block_uncompiled(pipeline: Any) -> None:
    blocks(pipeline)[0]._compiled_call_impl = None


def compiled_anew(modules: Callable[[Any], list[Any]], **options: Any) -> Spoil:
    def spoil(pipeline: Any) -> None:
        for module in modules(pipeline):
            module.compile(**options)

    return spoil


def first_block_in_python(pipeline: Any) -> None:
    compiled_anew(blocks)(pipeline)  # without `fullgraph`, which would refuse it
    block = blocks(pipeline)[0]
    block.forward = torch.compiler.disable(block.forward)


def layers_in_python(pipeline: Any) -> None:
    """Let every linear layer work outside of graphs."""
    for module in denoiser(pipeline).modules():
        if isinstance(module, torch.nn.Linear):
            module.__dict__["forward"] = torch.compiler.disable(module.forward)


def first_adapter_in(pipeline: Any) -> None:
    pipeline._pipeline.load_lora_weights(pipeline.first, adapter_name=adapters.NAME, hotswap=True)


EAGER = compiled_anew(blocks, backend="eager")
AOT_EAGER = compiled_anew(whole, backend="aot_eager")
ONE_SIZE = compiled_anew(whole, fullgraph=True)
CASES = [
    HalfDone(BLOCKS, "all but one", first_block_uncompiled, "3 of 4 blocks"),
    HalfDone(BLOCKS, "eager", EAGER, "4 of 4 blocks"),
    HalfDone(BLOCKS, "one in Python", first_block_in_python, "2 calls of Flux", called=True),
    HalfDone(WHOLE, "aot_eager", AOT_EAGER, "1 of 1 denoisers are"),
    HalfDone(DYNAMIC, "of one size", ONE_SIZE, "another size had 1 graphs", called=True),
    HalfDone(OFFLOADED, "layers in Python", layers_in_python, "calls of Linear in", called=True),
    HalfDone(INT8, "all but one block", first_block_uncompiled, "3 of 4 blocks"),
    HalfDone(SWAPPED, "not the second", first_adapter_in, "values than those swapped in"),
]
FORMS = [technique.id for technique in CATALOGUE if technique.id.startswith(BLOCKS)]


def param(technique: str, value: Any) -> Any:
    """Skipped where its library is not installed."""
    marks = [skipped_without_libraries(CATALOGUE[technique])]
    marks += [pytest.mark.long] if technique in (DYNAMIC, OFFLOADED) else []
    return pytest.param(value, id=str(value), marks=marks)


def device_for(technique: str) -> CpuDevice:
    return OffloadsToItself() if technique == OFFLOADED else CPU


@pytest.mark.parametrize("case", [param(case.technique, case) for case in CASES])
def test_what_is_half_compiled_is_inactive(case: HalfDone) -> None:
    case.is_noticed(workload_of(), device_for(case.technique))


def test_a_setting_that_lets_calls_fall_back_to_python_is_noticed() -> None:
    with DYNAMO.patch(recompile_limit=1):
        said = complaint(BLOCKS, workload_of(), CPU, compiled_anew(blocks))
    assert "2 calls of FluxSingleTransformerBlock" in str(said)


class CompiledAnew(compiling.SwappedCompiled):
    """What is drawn after the swap is of another size."""

    def __init__(self, pipeline: Any, draw: Callable[..., Any]) -> None:
        widths = iter((64, 128))
        super().__init__(pipeline, lambda **options: draw(width=next(widths), **options))


class Unchanged(compiling.SwappedCompiled):
    """What is drawn after the swap is what was drawn before."""

    def __init__(self, pipeline: Any, draw: Callable[..., Any]) -> None:
        images = draw(steps=1)
        super().__init__(pipeline, lambda **_: images)


@pytest.mark.parametrize(
    ("says", "instead"),
    [
        pytest.param("the swap had 1 graphs", CompiledAnew, marks=WITH_PEFT),
        pytest.param("draws what the first", Unchanged, marks=WITH_PEFT),
    ],
)
def test_a_swap_that_compiles_anew_or_draws_the_same_is_noticed(
    says: str, instead: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "SwappedCompiled", instead)
    assert says in str(complaint(SWAPPED, workload_of(), CPU, nothing))


@pytest.mark.parametrize("name", [param(name, name) for name in FORMS])
def test_in_full_it_is_active_and_leaving_leaves_nothing_compiled(
    name: str, counter: CompilationCounter
) -> None:
    kept: list[Any] = []
    workload = workload_of()
    switches = _config.use_duck_shape, DYNAMO.recompile_limit
    with counter.call("in effect"):
        assert complaint(name, workload, device_for(name), kept.append) is None
    assert (_config.use_duck_shape, DYNAMO.recompile_limit) == switches
    (pipeline,) = kept
    modules = [module for model in models(pipeline).values() for module in model.modules()]
    assert not any(vars(module).get(CALL) for module in modules)
    codes = {inspect.unwrap(type(module).forward).__code__ for module in modules}
    assert not any(map(_debug_get_cache_entry_list, codes))
    with counter.call("left"):
        workload.draw(getattr(pipeline, "_pipeline", pipeline), steps=1)
    runs = counter.counts.by_name(RUNS)
    assert runs["in effect"] > 0 == runs["left"]
