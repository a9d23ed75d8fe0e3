"""Which kernel fused attention takes, held to torch's rules and to peaks that others measured."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as functional
import torchgen  # type: ignore[import-untyped]
import yaml  # type: ignore[import-untyped]
from torch.nn.attention import SDPBackend, sdpa_kernel

from fixtures.devices.simulated import attention, kernels
from fixtures.devices.simulated.attention import Call, attention_kernel
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.devices.simulated.profiles import PROFILES, Profile
from fixtures.devices.simulated.simulation import DEVICE
from fixtures.records.counts import OPERATIONS, Counts
from fixtures.records.units import GIB

T4, A100, RTX_4090, H200 = (PROFILES[name] for name in ("t4", "a100-40gb", "rtx-4090", "h200"))
HALF, BRAIN, FULL = torch.float16, torch.bfloat16, torch.float32


def call(
    heads: int = 8,
    keys: int = 0,
    length: int = 77,
    width: int = 64,
    dtype: torch.dtype = HALF,
    mask: tuple[int, ...] | torch.Tensor | None = None,
    **given: Any,
) -> Call:
    """Inputs as diffusers makes them, heads behind positions in memory."""
    query, key, value = (
        torch.empty(1, count, number, width, dtype=dtype, device="meta").transpose(1, 2)
        for count, number in ((77, heads), (length, keys or heads), (length, keys or heads))
    )
    if isinstance(mask, tuple):
        mask = torch.empty(mask, dtype=torch.bool, device="meta")
    return Call(query, key, value, mask, **given)


EXPANDED = torch.empty(77, 1, dtype=HALF, device="meta").expand(77, 77)
KERNELS: list[tuple[Profile, Call, str]] = [
    (H200, call(), "cudnn"),
    (H200, call(mask=(77, 77)), "cudnn"),
    (H200, call(mask=(1, 77, 77)), "efficient"),  # cuDNN takes masks of two and four dimensions
    (H200, call(keys=2, mask=(77, 77), enable_gqa=True), "cudnn"),
    (H200, call(length=1), "flash"),
    (H200, call(width=160), "flash"),
    (H200, call(width=160, mask=(77, 77)), "efficient"),
    (H200, call(dropout_p=0.1), "flash"),
    (H200, call(dtype=FULL), "efficient"),
    (A100, call(), "flash"),
    (A100, call(mask=(1, 1, 1, 77)), "efficient"),
    (A100, call(mask=EXPANDED), "math"),  # its rows are not contiguous
    (A100, call(keys=2, enable_gqa=True), "flash"),
    (A100, call(keys=2), "math"),  # which refuses it, in torch's words
    (A100, call(keys=3, enable_gqa=True), "math"),
    (A100, call(is_causal=True), "flash"),
    (A100, call(is_causal=True, length=80), "efficient"),
    (A100, call(width=512), "efficient"),
    (A100, call(width=20), "flash"),
    (A100, call(width=20, mask=(77, 77)), "math"),
    (A100, call(length=0), "math"),
    (T4, call(), "efficient"),
    (T4, call(dtype=BRAIN), "math"),
    (T4, call(width=20), "math"),
    (T4, call(width=20, dtype=FULL), "efficient"),
    (RTX_4090, Call(*(torch.empty(1, 4096, 64, dtype=HALF, device="meta"),) * 3), "math"),
]


@pytest.mark.parametrize(("profile", "asked", "kernel"), KERNELS)
def test_attention_takes_the_first_kernel_that_can(
    profile: Profile, asked: Call, kernel: str
) -> None:
    assert attention_kernel(profile, asked) == kernel
    with sdpa_kernel(SDPBackend.MATH):
        assert attention_kernel(profile, asked) == "math"


@pytest.mark.parametrize(("since_2_14", "kernel"), [(False, "math"), (True, "efficient")])
def test_grouped_heads_with_a_mask_are_composed_before_torch_2_14(
    monkeypatch: pytest.MonkeyPatch, since_2_14: bool, kernel: str
) -> None:
    monkeypatch.setattr(attention, "EFFICIENT_HEADS", since_2_14)
    assert attention_kernel(A100, call(keys=2, mask=(77, 77), enable_gqa=True)) == kernel
    assert attention_kernel(A100, call(keys=1, mask=(77, 77))) == kernel
    assert attention_kernel(A100, call(keys=2, mask=(77, 77))) == "math"


def test_kernels_that_are_switched_off_are_not_taken() -> None:
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        assert attention_kernel(A100, call()) == "cudnn"
        with pytest.raises(RuntimeError, match="No available kernel"):
            attention_kernel(A100, call(dtype=FULL))
    torch.use_deterministic_algorithms(True)
    try:
        assert attention_kernel(H200, call()) == "flash"
    finally:
        torch.use_deterministic_algorithms(False)


def ran(profile: Profile, asked: Call, **draws: bool) -> tuple[float, Counter[str]]:
    """The peak of a call above its inputs, in GiB, and its operations."""
    device = SimulatedDevice(profile, **draws)
    with device.entered(), torch.no_grad():
        simulation: Any = device._simulation
        query, key, value = (torch.empty_like(part, device=DEVICE) for part in asked.parts)
        mask = None if asked.mask is None else torch.empty_like(asked.mask, device=DEVICE)
        simulation.begin()
        allocator = simulation.memory.allocator
        allocator.reset_peaks()
        before_bytes = allocator.allocated_bytes
        functional.scaled_dot_product_attention(
            query, key, value, mask, enable_gqa=asked.enable_gqa
        )
        peak_bytes = allocator.peak_allocated_bytes - before_bytes
        operations = Counts.of(simulation.meter.tally).by_name(OPERATIONS)
    return peak_bytes / GIB, Counter(operations)


@pytest.mark.parametrize(
    ("heads", "keys", "length", "dtype", "mask", "published_gib"),
    [
        (48, 12, 4608, BRAIN, (1, 1, 1, 4608), 9.02),  # diffusers 11a82a15fe
        (28, 4, 4000, HALF, (1, 1, 4000, 4000), 3.99),  # ComfyUI pull request 15135
        (28, 4, 8000, HALF, (1, 1, 8000, 8000), 15.48),
    ],
)
def test_composed_attention_takes_what_others_measured(
    monkeypatch: pytest.MonkeyPatch,
    heads: int,
    keys: int,
    length: int,
    dtype: torch.dtype,
    mask: tuple[int, ...],
    published_gib: float,
) -> None:
    monkeypatch.setattr(attention, "EFFICIENT_HEADS", False)
    query, key = (torch.empty(1, n, length, 128, dtype=dtype, device="meta") for n in (heads, keys))
    added = torch.empty(mask, dtype=torch.bool if dtype is BRAIN else dtype, device="meta")
    asked = Call(query, key, key, added, enable_gqa=True)
    peak_gib, operations = ran(RTX_4090, asked)
    assert peak_gib == pytest.approx(published_gib, rel=2e-3)
    assert operations["aten::_safe_softmax"] == 1
    unmasked = Call(query, key, key, enable_gqa=True)
    peak_gib, operations = ran(RTX_4090, unmasked)
    assert operations == {"aten::_scaled_dot_product_flash_attention": 1}
    assert peak_gib < 0.1


def test_a_mask_whose_rows_are_not_whole_is_padded() -> None:
    _, whole = ran(A100, call(length=80, mask=(1, 1, 77, 80)))
    _, padded = ran(A100, call(mask=(1, 1, 77, 77)))
    assert whole["aten::_scaled_dot_product_efficient_attention"] == 1
    assert padded - whole == {"aten::constant_pad_nd": 1}


@pytest.mark.parametrize("draws", [False, True])
def test_rms_norm_is_one_kernel(draws: bool) -> None:
    device = SimulatedDevice(draws=draws)
    with device.entered(), torch.no_grad():
        simulation: Any = device._simulation
        norm = torch.nn.RMSNorm(64).to(DEVICE, BRAIN)
        values = torch.linspace(-1, 1, 8 * 64).reshape(8, 64).to(DEVICE, BRAIN)
        simulation.begin()
        result = norm(values)
        operations = Counts.of(simulation.meter.tally).by_name(OPERATIONS)
        expected = functional.rms_norm(torch.linspace(-1, 1, 8 * 64).reshape(8, 64), (64,))
        assert operations == {"aten::_fused_rms_norm": 1}
        assert (result.shape, result.dtype, result.device) == ((8, 64), BRAIN, DEVICE)
        if draws:
            torch.testing.assert_close(result.cpu().float(), expected, atol=1e-2, rtol=1e-2)


def test_every_kernel_of_a_forward_pass_that_a_cpu_composes_is_modelled() -> None:
    """By torch's own table of what has a kernel on CUDA and is composed of others elsewhere."""
    table = Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"
    composed = {
        entry["func"].partition("(")[0]
        for entry in yaml.safe_load(table.read_text(encoding="utf-8"))
        for keys in [{key.strip() for keys in entry.get("dispatch", {}) for key in keys.split(",")}]
        if {"CUDA", "CompositeImplicitAutograd"} <= keys and "CPU" not in keys
    }
    modelled = {operation._schema.name.partition("::")[2] for operation in kernels.OUTPUTS}
    assert composed
    assert composed <= modelled
