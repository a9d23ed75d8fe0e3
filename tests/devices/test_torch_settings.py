"""The settings of torch that a technique may leave: each is named once."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest
import torch

from fixtures.devices import torch_settings
from fixtures.devices.torch_settings import UNREADABLE, changed_since, read_torch_settings

ENTERED: list[Any] = []
"""Kept: a mode is left when nobody holds it."""


def enter_inference_mode() -> None:
    ENTERED.append(torch.inference_mode())
    ENTERED[-1].__enter__()


def set_conv_precision() -> None:
    torch.backends.cudnn.conv.fp32_precision = "ieee"  # type: ignore[attr-defined]


CHANGES: dict[str, Callable[[], object]] = {
    "default device: None -> meta": lambda: torch.set_default_device("meta"),
    "default_dtype: torch.float32 -> torch.float64": lambda: torch.set_default_dtype(torch.float64),
    "num_threads": lambda: torch.set_num_threads(torch.get_num_threads() + 1),
    "cudnn_enabled": lambda: setattr(torch.backends.cudnn, "enabled", False),
    "cudnn_benchmark": lambda: setattr(torch.backends.cudnn, "benchmark", True),
    "cudnn_deterministic": lambda: setattr(torch.backends.cudnn, "deterministic", True),
    "deterministic_algorithms": lambda: torch.use_deterministic_algorithms(True),
    "flash_sdp_enabled": lambda: torch.backends.cuda.enable_flash_sdp(False),
    "mem_efficient_sdp_enabled": lambda: torch.backends.cuda.enable_mem_efficient_sdp(False),
    "math_sdp_enabled": lambda: torch.backends.cuda.enable_math_sdp(False),
    "cudnn_sdp_enabled": lambda: torch.backends.cuda.enable_cudnn_sdp(False),
    "fp32 precision of cuda's conv: tf32 -> ieee": set_conv_precision,
    "float32_matmul_precision: highest -> high": lambda: torch.set_float32_matmul_precision("high"),
    "autocast on the CPU: False -> True": lambda: torch.set_autocast_enabled("cpu", True),
    "autocast dtype on CUDA": lambda: torch.set_autocast_dtype("cuda", torch.bfloat16),
    "grad_enabled": lambda: torch.set_grad_enabled(not torch.is_grad_enabled()),
    "inference mode: False -> True": enter_inference_mode,
}
"""By what is said of it, a change of the process."""


def named() -> list[tuple[str, tuple[str, ...]]]:
    """Every change, one after another, and what is said of it."""
    said = []
    for name, change in CHANGES.items():
        before = read_torch_settings()
        change()
        said.append((name, changed_since(before)))
    return said


def test_a_change_is_named_once() -> None:
    """In a process of its own, of one that has done nothing else and is small enough to fork."""
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload([__name__])
    with ProcessPoolExecutor(1, server) as process:
        for name, changed in process.submit(named).result():
            # Some change others, too: inference mode is without gradients.
            assert len([what for what in changed if what.startswith(name)]) == 1, changed
    before = read_torch_settings()
    assert changed_since(before) == ()


def test_what_torch_refuses_to_read_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise RuntimeError("mixed use of the old and the new name")

    monkeypatch.setattr(torch_settings, "_settings", lambda: {"tf32": refuse})
    assert read_torch_settings() == {"tf32": UNREADABLE}
    assert changed_since({"tf32": True}) == ()
