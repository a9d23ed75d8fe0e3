"""xFormers on the simulated device: its wrapper runs, its kernel is booked and computed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from diffusers.models.attention_processor import AttnProcessor2_0
from xformers.ops import LowerTriangularMask, memory_efficient_attention
from xformers.ops.fmha import common, cutlass, dispatch

from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.devices.simulated.private import real_values
from fixtures.devices.simulated.shadows import shadow_of
from fixtures.devices.simulated.simulation import DEVICE, Simulation
from fixtures.records.counts import COMPUTE, FLOPS, OPERATIONS, Counts
from tests.support.half_done import complaint
from tests.support.simulated_runs import shared_device, shared_workload, simulate

KERNEL = "aten::_efficient_attention_forward"
NAMES: tuple[tuple[Any, str], ...] = (
    (common, "_built_with_cuda"),
    (common, "_is_bias_type_supported_in_BMK"),
    (dispatch, "_dispatch_fw_priority_list"),
    (cutlass.FwOp, "SUPPORTED_ATTN_BIAS_TYPES"),
)
BATCH, QUERIES, KEYS, HEADS, WIDTH = 2, 6, 16, 3, 8
TOLERANCE = {torch.float32: 1e-6, torch.float16: 1e-3, torch.bfloat16: 1e-2}


def drawn(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Numbers on the device."""
    return torch.randn(shape).to(DEVICE, dtype)


def values_of(tensor: torch.Tensor) -> torch.Tensor:
    shadow = shadow_of(tensor)
    assert shadow is not None
    return shadow.values


def softmax_attention(operands: Iterable[torch.Tensor], bias: torch.Tensor | None) -> torch.Tensor:
    """As the docstring of `memory_efficient_attention` writes it, with positions before heads."""
    query, key, value = (part.float().transpose(1, 2) for part in operands)
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    if bias is not None:
        scores = scores + bias.float()
    attended: torch.Tensor = scores.softmax(-1) @ value
    return attended.transpose(1, 2)


def none(query: torch.Tensor) -> None:
    """No bias."""


def full(query: torch.Tensor) -> torch.Tensor:
    return drawn(BATCH, HEADS, QUERIES, KEYS, dtype=query.dtype)


def masked(query: torch.Tensor) -> torch.Tensor:
    """The last keys hidden from all queries, as diffusers expands a mask of padded prompts."""
    mask = torch.zeros(BATCH, 1, 1, KEYS)
    mask[..., 10:] = float("-inf")
    return mask.to(DEVICE, query.dtype).expand(BATCH, HEADS, QUERIES, KEYS)


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
def test_it_computes_softmax_attention(dtype: torch.dtype) -> None:
    with SimulatedDevice(draws=True).entered():
        for bias in (none, full, masked):
            query, key, value = (
                drawn(BATCH, HEADS, length, WIDTH, dtype=dtype).transpose(1, 2)
                for length in (QUERIES, KEYS, KEYS)
            )
            weights = bias(query)
            attended = memory_efficient_attention(query, key, value, attn_bias=weights)
            operands = [values_of(part) for part in (query, key, value)]
            added = None if weights is None else values_of(weights)
            result = values_of(attended)
            assert attended.dtype is result.dtype is dtype
            assert attended.is_contiguous()
            assert result.is_contiguous()
            assert attended.device == DEVICE
            with real_values(), torch._C.DisableTorchFunction():
                expected = softmax_attention(operands, added)
                torch.testing.assert_close(
                    result.float(), expected, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype]
                )


def test_what_the_host_cannot_compute_is_refused() -> None:
    with SimulatedDevice(draws=True).entered():
        query = drawn(1, QUERIES, HEADS, WIDTH)
        for given in ({"attn_bias": LowerTriangularMask()}, {"p": 0.5}):  # p: dropout
            with pytest.raises(NotImplementedError, match="whole sequences"):
                memory_efficient_attention(query, query, query, **given)


# What is booked


def test_the_kernel_s_flops_and_memory(simulation: Simulation) -> None:
    """More keys than queries, which torch's own formula takes for more heads."""
    query = torch.empty((1, 64, 2, 40), device=DEVICE, dtype=torch.float16)
    key = torch.empty((1, 512, 2, 40), device=DEVICE, dtype=torch.float16)
    live = simulation.memory.allocator.requested_bytes
    attended = memory_efficient_attention(query, key, key)
    made = simulation.memory.allocator.requested_bytes - live
    counts = Counts.of(simulation.meter.tally)
    products = 2 * 2 * 2 * 64 * 512 * 40  # two of them, in two heads
    assert counts.by_name(OPERATIONS)[KERNEL] == 1
    assert counts.total(FLOPS) == products
    assert counts.by_name(COMPUTE) == {"float16": 1}
    calls, flops, moved = simulation.meter.kinds["attention"]
    assert (calls, flops) == (1, products)
    assert made == 2 * attended.numel()
    operands = 2 * (2 * query.numel() + 2 * key.numel())
    assert operands <= moved <= operands + 16  # the seed and its offset


def fused_by_torch(pipeline: Any) -> None:
    """The class is called xFormers', the kernel is torch's."""
    pipeline.unet.set_attn_processor(type("XFormersAttnProcessor", (AttnProcessor2_0,), {})())


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (fused_by_torch, "_attention_forward operations, not"),
        (
            lambda pipeline: pipeline.unet.set_default_attn_processor(),
            "have no XFormersAttnProcessor",
        ),
    ],
    ids=["another kernel", "switched off"],
)
def test_without_the_kernel_it_is_not_in_effect(spoil: Callable[[Any], None], says: str) -> None:
    assert says in str(complaint("xformers", shared_workload(), shared_device(), spoil))


# Around it


def test_where_it_is_not_installed_or_works_otherwise_one_sentence_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(common.AttentionOpBase, "not_supported_reasons", None)
        sentence = "xFormers does not run on this device with this torch (TypeError)"
        assert SimulatedDevice().missing("xformers") == sentence
    with monkeypatch.context() as patch:
        for owner, name in NAMES:
            patch.delattr(owner, name)
        assert simulate("fp16").component_peak_bytes
        assert not any(hasattr(owner, name) for owner, name in NAMES[:-1])
    for name in ("xformers", "xformers.ops", "xformers.ops.fmha"):
        monkeypatch.setitem(sys.modules, name, None)
    assert SimulatedDevice().missing("xformers") == "xFormers is not installed"
    assert simulate("fp16").component_peak_bytes
