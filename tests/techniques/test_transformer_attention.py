"""Backends and fused projections: in effect, by half, without effect, undone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from diffusers.models.attention_dispatch import AttentionBackendName
from diffusers.models.transformers import transformer_flux

from fixtures.devices.cpu import CpuDevice
from fixtures.devices.global_state import changed_state, read_global_state
from fixtures.techniques import CATALOGUE
from fixtures.workloads import WORKLOADS
from tests.support.half_done import HalfDone, Spoil, complaint, nothing

WHOLE = WORKLOADS["storybook-dit"]
WORKLOAD = replace(WHOLE, call=replace(WHOLE.call, steps=2))
NAMES = ("math_backend", "flash_backend", "fused_qkv_projections")


@pytest.fixture(scope="module")
def cpu() -> CpuDevice:
    return CpuDevice()


def half_with(backend: AttentionBackendName | None) -> Spoil:
    def spoil(pipeline: Any) -> None:
        for processor in list(pipeline.transformer.attn_processors.values())[::2]:
            processor._attention_backend = backend

    return spoil


def half_apart(pipeline: Any) -> None:
    layers = [m for m in pipeline.transformer.modules() if hasattr(m, "unfuse_projections")]
    for layer in layers[::2]:
        layer.unfuse_projections()


def ignore_the_matrix(pipeline: Any) -> None:
    """A processor that knows nothing of fused projections."""
    for layer in pipeline.transformer.modules():
        if hasattr(layer, "unfuse_projections"):
            layer.processor = _WithThree(layer.processor)


class _WithThree:
    def __init__(self, processor: Any) -> None:
        self._processor = processor

    def __call__(self, attn: Any, *args: Any, **kwargs: Any) -> Any:
        attn.fused_projections = False
        try:
            return self._processor(attn, *args, **kwargs)
        finally:
            attn.fused_projections = True


HALF_DONE = [
    HalfDone("math_backend", "on half of the layers", half_with(None), "do not ask _native_math"),
    HalfDone(
        "flash_backend",
        "on half of the layers, math on the others",
        half_with(AttentionBackendName._NATIVE_MATH),
        "do not ask _native_flash",
    ),
    HalfDone("fused_qkv_projections", "in half of the layers", half_apart, "have a matrix each"),
    HalfDone("fused_qkv_projections", "but not used", ignore_the_matrix, "matrix products"),
]


@pytest.mark.parametrize("case", HALF_DONE, ids=str)
def test_a_half_done_technique_is_inactive(case: HalfDone, cpu: CpuDevice) -> None:
    said = complaint(case.technique, WORKLOAD, cpu, case.spoil)
    assert said is not None
    assert case.says in said


@pytest.mark.parametrize("name", NAMES)
def test_done_in_full_it_is_active_and_undone(name: str, cpu: CpuDevice) -> None:
    before = read_global_state()
    assert complaint(name, WORKLOAD, cpu, nothing) is None
    assert changed_state(before, read_global_state()) == []
    with CATALOGUE["fp32"].applied(WORKLOAD, cpu) as pipeline:
        fp32 = WORKLOAD.draw(pipeline)
    with CATALOGUE[name].applied(WORKLOAD, cpu) as pipeline:
        np.testing.assert_allclose(WORKLOAD.draw(pipeline), fp32, atol=1e-3)
    np.testing.assert_array_equal(WORKLOAD.draw(pipeline), fp32)


def test_a_backend_that_is_named_and_not_asked_is_found_by_its_operations(cpu: CpuDevice) -> None:
    """What is said of a layer is not what it does."""
    said = complaint("math_backend", WORKLOAD, cpu, use_flash_under_another_name)
    assert said is not None
    assert "separate softmaxes" in said


def use_flash_under_another_name(pipeline: Any) -> None:
    """The dispatch of Flux takes the native kernel whatever the processor asks."""
    dispatch = transformer_flux.dispatch_attention_fn

    def native(*args: Any, **kwargs: Any) -> Any:
        kwargs["backend"] = AttentionBackendName.NATIVE
        return dispatch(*args, **kwargs)

    for processor in pipeline.transformer.attn_processors.values():
        processor.__class__ = type(
            type(processor).__name__, (type(processor),), {"__call__": _under(native)}
        )


def _under(dispatch: Any) -> Any:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = transformer_flux.dispatch_attention_fn
        transformer_flux.dispatch_attention_fn = dispatch
        try:
            return transformer_flux.FluxAttnProcessor.__call__(self, *args, **kwargs)
        finally:
            transformer_flux.dispatch_attention_fn = before

    return call
