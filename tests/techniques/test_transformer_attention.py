"""Backends and fused projections: in effect, by half, without effect, undone."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from diffusers.models.attention_dispatch import AttentionBackendName, _AttentionBackendRegistry
from diffusers.models.transformers import transformer_flux

from fixtures.devices.cpu import CpuDevice
from fixtures.records.images import Images
from fixtures.techniques import CATALOGUE
from tests.support.half_done import HalfDone, Spoil, brief, complaint, nothing

WORKLOAD = brief("storybook-dit")
NAMES = ("math_backend", "flash_backend", "fused_qkv_projections")
CPU = CpuDevice()


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


HALF_DONE = [
    HalfDone("math_backend", "on half of the layers", half_with(None), "do not ask _native_math"),
    # What is said of a layer is not what it does.
    HalfDone("math_backend", "said", use_flash_under_another_name, "separate soft", called=True),
    HalfDone(
        "flash_backend",
        "on half of the layers, math on the others",
        half_with(AttentionBackendName._NATIVE_MATH),
        "do not ask _native_flash",
    ),
    HalfDone("fused_qkv_projections", "in half of the layers", half_apart, "have a matrix each"),
    HalfDone("fused_qkv_projections", "unused", ignore_the_matrix, "matrix products", called=True),
]


@pytest.mark.parametrize("case", HALF_DONE, ids=str)
def test_a_half_done_technique_is_inactive(case: HalfDone) -> None:
    case.is_noticed(WORKLOAD, CPU)


@cache
def fp32() -> Images:
    with CATALOGUE["fp32"].applied(WORKLOAD, CPU) as pipeline:
        return WORKLOAD.draw(pipeline)


@pytest.mark.parametrize("name", NAMES)
def test_done_in_full_it_is_active_and_undone(name: str) -> None:
    active, plain = _AttentionBackendRegistry.get_active_backend(), fp32()
    assert complaint(name, WORKLOAD, CPU, nothing) is None
    assert _AttentionBackendRegistry.get_active_backend() == active
    with CATALOGUE[name].applied(WORKLOAD, CPU) as pipeline:
        np.testing.assert_allclose(WORKLOAD.draw(pipeline), plain, atol=1e-3)
    np.testing.assert_array_equal(WORKLOAD.draw(pipeline), plain)
