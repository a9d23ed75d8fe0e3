"""What is compiled in part, by another back end, or for nothing is not in effect.

Graphs are captured and run as they were: inductor would take minutes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
import torch
from torch._dynamo.eval_frame import _debug_get_cache_entry_list
from torch.fx.experimental import _config

from fixtures.catalogue.techniques import CATALOGUE, compiling
from fixtures.catalogue.techniques.registry import models
from fixtures.catalogue.workloads import Workload
from fixtures.catalogue.workloads.twins import twin_of
from fixtures.devices.compilation import CompilationCounter, compilation_counter
from fixtures.devices.cpu import CpuDevice
from fixtures.devices.phases import denoiser
from fixtures.devices.torch_settings import one_thread
from fixtures.records.counts import RUNS
from tests.support.half_done import HalfDone, Spoil, complaint

CPU = CpuDevice()
DYNAMO = torch._dynamo.config
BLOCKS, WHOLE, DYNAMIC = "torch_compile", "torch_compile_whole", "torch_compile_dynamic"


@cache
def workload_of() -> Workload:
    return twin_of("flux")


@pytest.fixture(autouse=True)
def counter() -> Iterator[CompilationCounter]:
    with one_thread(), compilation_counter(lowers=False) as counter:
        yield counter


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


EAGER = compiled_anew(blocks, backend="eager")
AOT_EAGER = compiled_anew(whole, backend="aot_eager")
ONE_SIZE = compiled_anew(whole, fullgraph=True)
CASES = [
    HalfDone(BLOCKS, "all but one", first_block_uncompiled, "1 of 4 blocks"),
    HalfDone(BLOCKS, "eager", EAGER, "4 of 4 blocks"),
    HalfDone(BLOCKS, "one in Python", first_block_in_python, "2 calls of Flux", called=True),
    HalfDone(WHOLE, "aot_eager", AOT_EAGER, "1 of 1 denoisers are not compiled"),
    HalfDone(DYNAMIC, "of one size", ONE_SIZE, "another size had 1 graphs", called=True),
]
FORMS = [technique.id for technique in CATALOGUE if technique.id.startswith(BLOCKS)]


def param(technique: str, value: Any) -> Any:
    marks = [pytest.mark.long] if technique == DYNAMIC else []
    return pytest.param(value, id=str(value), marks=marks)


@pytest.mark.parametrize("case", [param(case.technique, case) for case in CASES])
def test_what_is_half_compiled_is_inactive(case: HalfDone) -> None:
    case.is_noticed(workload_of(), CPU)


def test_a_setting_that_lets_calls_fall_back_to_python_is_noticed() -> None:
    with DYNAMO.patch(recompile_limit=1):
        said = complaint(BLOCKS, workload_of(), CPU, compiled_anew(blocks))
    assert "2 calls of FluxSingleTransformerBlock" in str(said)


@pytest.mark.parametrize("name", [param(name, name) for name in FORMS])
def test_in_full_it_is_active_and_leaving_forgets_what_was_compiled(
    name: str, counter: CompilationCounter
) -> None:
    kept: list[Any] = []
    workload = workload_of()
    switches = _config.use_duck_shape, DYNAMO.recompile_limit
    with counter.call("in effect"):
        assert complaint(name, workload, CPU, kept.append) is None
    assert (_config.use_duck_shape, DYNAMO.recompile_limit) == switches
    (pipeline,) = kept
    modules = [module for model in models(pipeline).values() for module in model.modules()]
    codes = {inspect.unwrap(type(module).forward).__code__ for module in modules}
    assert not any(map(_debug_get_cache_entry_list, codes))
    assert counter.counts.by_name(RUNS)["in effect"] > 0
