"""LayoutRandomiser: other places, the same weights, and pipelines that work as before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from fixtures.devices.cpu import CpuDevice
from fixtures.devices.memory_layout import LayoutRandomiser
from fixtures.techniques import CATALOGUE
from fixtures.verdicts.similarity import ssim
from fixtures.workloads import WORKLOADS

BRIEF = replace(WORKLOADS["storybook"], call=replace(WORKLOADS["storybook"].call, steps=2))


def places(pipeline: Any) -> list[int]:
    models = [one for one in pipeline.components.values() if isinstance(one, torch.nn.Module)]
    return [tensor.data_ptr() for model in models for tensor in model.parameters()]


@pytest.mark.parametrize("technique", ["fp32", "channels_last", "layerwise_casting", "traced_unet"])
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
    layout, found = LayoutRandomiser(), set()
    for _ in range(8):
        layout(None)
        # They stay until the next layout: what is freed at once takes no place.
        found.add(tuple(filler.numel() for filler in layout._fillers))
    assert () not in found
    assert len(found) == 8
