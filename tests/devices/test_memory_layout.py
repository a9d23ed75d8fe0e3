"""Randomised layouts: other places, the same weights, and pipelines that work as before."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import replace
from typing import Any

import pytest
import torch

from fixtures.catalogue.techniques import CATALOGUE
from fixtures.catalogue.workloads import WORKLOADS
from fixtures.devices.cpu import CpuDevice, keep_freed_memory
from tests.support.differences import ssim
from tests.support.programs import printed

BRIEF = replace(WORKLOADS["storybook"], call=replace(WORKLOADS["storybook"].call, steps=1))


def places(pipeline: Any) -> list[int]:
    models = [part for part in pipeline.components.values() if isinstance(part, torch.nn.Module)]
    return [tensor.data_ptr() for model in models for tensor in model.parameters()]


@pytest.mark.parametrize("technique", ["channels_last", "layerwise_casting", "traced_unet"])
def test_the_images_are_the_same_wherever_the_weights_lie(technique: str) -> None:
    device, workload = CpuDevice(), BRIEF
    with CATALOGUE[technique].applied(workload, device) as pipeline:
        before, at_first = workload.draw(pipeline), places(pipeline)
        strides = [p.stride() for p in pipeline.vae.parameters()]
        device.randomise_layout(pipeline)
        moved = zip(at_first, places(pipeline), strict=True)
        assert all(before_at != now_at for before_at, now_at in moved)
        assert [p.stride() for p in pipeline.vae.parameters()] == strides
        assert ssim(workload.draw(pipeline), before) > 0.99999


def test_what_is_allocated_next_lies_behind_other_fillers_without_a_pipeline_too() -> None:
    device, fillers = CpuDevice(), set()
    for _ in range(8):
        device.randomise_layout(None)
        # They stay until the next layout: what is freed at once takes no place.
        fillers.add(tuple(filler.numel() for filler in device._fillers))
    assert () not in fillers
    assert len(fillers) == 8


# Memory that is freed and needed again causes no page faults; without the setting it does

FAULTS = """
import resource, sys, torch
torch.set_num_threads(1)
from fixtures.devices.cpu import keep_freed_memory
if sys.argv[1] == "kept":
    assert keep_freed_memory()
def call():
    for size_mib in (40, 3, 17):
        torch.ones(size_mib * 2**18)
for _ in range(5):  # until small blocks that stay have found places between the large ones
    call()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
call()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
"""Page faults of a call that was made before."""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="mallopt is glibc's")
def test_a_call_made_before_finds_its_memory_in_place_where_it_would_be_given_back() -> None:
    if not hasattr(ctypes.CDLL(None), "mallopt"):
        pytest.skip("this C library has no mallopt")
    assert int(printed(FAULTS, "kept")) < 100
    assert int(printed(FAULTS, "given back")) > 1000


def test_a_c_library_without_the_setting_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert not keep_freed_memory()
