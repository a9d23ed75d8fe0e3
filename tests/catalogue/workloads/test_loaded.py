"""Loaded pipelines: each is loaded once, and every scenario gets a copy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from fixtures.catalogue.workloads import base
from fixtures.catalogue.workloads.base import KEPT, Workload
from tests.support.simulated_runs import shared_device, small

HALF = torch.float16


def noting(names: list[str], name: str) -> Workload:
    """A workload that notes when it loads."""
    whole = small()

    def source(*arguments: Any, **options: Any) -> Any:
        names.append(name)
        return whole.source(*arguments, **options)

    return replace(whole, name=name, source=source)


def weight(pipeline: Any) -> torch.Tensor:
    stored: torch.Tensor = pipeline.unet.conv_in.weight
    return stored


def dtype_of(workload: Workload, dtype: torch.dtype) -> torch.dtype:
    return weight(workload.load(dtype)).dtype


def test_each_dtype_is_loaded_once() -> None:
    names: list[str] = []
    a, before = noting(names, "a"), len(KEPT)
    dtypes = [HALF, torch.float32, HALF]
    assert list(map(dtype_of, [a] * 3, dtypes)) == dtypes
    assert (names, len(KEPT)) == (["a", "a"], before + 2)


def test_what_is_large_is_handed_out_and_not_kept_and_fake_tensors_take_no_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(base, "MOST_BYTES", 0)
    names: list[str] = []
    a, fake = (noting(names, name) for name in ("a", "fake"))
    for _ in range(2):
        a.load(HALF)
    with shared_device().entered():
        for _ in range(2):
            fake.load(HALF)
    assert names == ["a", "a", "fake"]


def test_what_a_scenario_does_to_its_components_is_not_another_s() -> None:
    workload = small()
    first, again = workload.load(HALF), workload.load(HALF)
    for name, component in again.components.items():
        assert component is None or component is not getattr(first, name)
    assert torch.equal(weight(first), weight(again))
    assert weight(first).data_ptr() != weight(again).data_ptr()
    words = len(first.tokenizer)
    first.tokenizer.add_tokens(["a word of its own"])
    first.tokenizer.padding_side = "left"
    first.scheduler.set_timesteps(3)
    second = workload.load(HALF)
    assert len(first.tokenizer) == words + 1
    assert len(second.tokenizer) == words
    assert second.tokenizer.padding_side == "right"
    assert second.scheduler.num_inference_steps is None
    assert dict(first.config) == dict(second.config)
