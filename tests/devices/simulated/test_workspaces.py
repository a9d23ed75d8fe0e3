"""The rule for cuDNN's workspaces, case by case, and the second allocator that it feeds."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fixtures.devices.simulated.modelled import ModelledMemory
from fixtures.devices.simulated.workspaces import workspace_bytes
from fixtures.records.run import RESERVED, WHOLE
from fixtures.records.units import MIB
from tests.support.simulated_runs import simulate

aten = torch.ops.aten
HALF, FULL = torch.float16, torch.float32


def convolution(
    values: tuple[int, ...],
    weight: tuple[int, ...],
    dtype: torch.dtype = HALF,
    *,
    stride: int = 1,
    transposed: bool = False,
    groups: int = 1,
    channels_last: bool = False,
) -> int:
    """The workspace of a convolution with a padding of one."""
    spatial = len(values) - 2
    sides = [torch.empty(shape, dtype=dtype, device="meta") for shape in (values, weight)]
    if channels_last:
        sides[0] = sides[0].to(memory_format=torch.channels_last)
    places: Any = ([stride] * spatial, [1] * spatial, [1] * spatial)
    rest = (transposed, [0] * spatial, groups)
    return workspace_bytes(aten.convolution.default, (*sides, None, *places, *rest))


def test_in_half_precision_input_weight_and_output_are_copied() -> None:
    elements = 2 * 8 * 6 * 4 + 16 * 8 * 3 * 3 + 2 * 16 * 6 * 4
    assert convolution((2, 8, 6, 4), (16, 8, 3, 3)) == 2 * elements
    assert convolution((2, 8, 6, 4), (16, 8, 3, 3), torch.bfloat16) == 2 * elements
    smaller = elements - 2 * 16 * (6 * 4 - 3 * 2)
    assert convolution((2, 8, 6, 4), (16, 8, 3, 3), stride=2) == 2 * smaller


def test_in_three_dimensions_half_precision_alone_is_known_to_copy() -> None:
    elements = 8 * 5 * 6 * 4 + 16 * 8 * 3 * 3 * 3 + 16 * 5 * 6 * 4
    assert convolution((1, 8, 5, 6, 4), (16, 8, 3, 3, 3)) == 2 * elements
    assert convolution((1, 8, 5, 6, 4), (16, 8, 3, 3, 3), FULL) == 0


@pytest.mark.parametrize("dtype", [HALF, FULL])
def test_several_images_that_are_channels_last_need_no_copy(dtype: torch.dtype) -> None:
    weight = (8, 8, 3, 3)
    assert convolution((2, 8, 6, 4), weight, dtype, channels_last=True) == 0
    alone = convolution((1, 8, 6, 4), weight, dtype)
    assert convolution((1, 8, 6, 4), weight, dtype, channels_last=True) == alone > 0
    assert convolution((2, 1, 6, 4), (8, 1, 3, 3), dtype, channels_last=True) > 0


def test_in_fp32_the_input_alone_is_copied() -> None:
    assert convolution((2, 8, 6, 4), (16, 8, 3, 3), FULL) == 4 * (2 * 8 * 6 * 4)


@pytest.mark.parametrize("dtype", [HALF, FULL])
def test_what_cudnn_does_not_compute_or_nobody_measured_has_none(dtype: torch.dtype) -> None:
    assert convolution((1, 8, 6, 4), (8, 1, 3, 3), dtype, groups=8) == 0
    assert convolution((1, 8, 6, 4), (16, 1, 3, 3), dtype, groups=8) == 0
    assert convolution((1, 8, 6, 4), (8, 8, 3, 3), dtype, transposed=True) == 0
    assert convolution((1, 8, 5, 6, 4), (8, 1, 3, 3, 3), dtype, groups=8) == 0
    assert convolution((1, 8, 6), (8, 8, 3), dtype) == 0
    product = [torch.empty(4, 4, dtype=dtype, device="meta")] * 2
    assert workspace_bytes(aten.mm.default, product) == 0


def test_groups_that_are_not_of_one_channel_have_one() -> None:
    assert convolution((1, 8, 6, 4), (8, 4, 3, 3), FULL, groups=2) == 4 * 8 * 6 * 4
    assert convolution((1, 1, 6, 4), (8, 1, 3, 3), FULL) == 4 * 6 * 4


def test_a_workspace_counts_for_as_long_as_it_is_there() -> None:
    memory = ModelledMemory(64 * MIB)
    memory.malloc(0, 2 * MIB)
    memory.pass_through(4 * MIB)
    memory.malloc(512, 3 * MIB)
    assert memory.peak_allocated_bytes == 6 * MIB
    assert memory.peak_reserved_bytes == 20 * MIB
    memory.free(512)
    memory.begin()
    assert memory.peak_allocated_bytes == 2 * MIB


def test_a_workspace_without_room_is_left_out() -> None:
    memory = ModelledMemory(32 * MIB)
    memory.malloc(0, 24 * MIB)
    memory.pass_through(16 * MIB)
    assert memory.peak_allocated_bytes == 24 * MIB


def test_where_workspaces_have_fragmented_the_card_there_is_no_limit_from_then_on() -> None:
    memory = ModelledMemory(40 * MIB)
    memory.pass_through(20 * MIB)
    memory.malloc(0, MIB + 1)  # at the start of the workspace's segment, which has to stay
    memory.malloc(512, 30 * MIB)
    assert memory.peak_allocated_bytes > 31 * MIB


def test_the_exact_peak_is_without_workspaces_and_the_modelled_one_with_them() -> None:
    def add_convolution(pipeline: Any) -> None:
        on_device: dict[str, Any] = {"dtype": HALF, "device": "cuda"}

        def convolve(*args: Any) -> None:
            values = torch.empty(1, 64, 1024, 1024, **on_device)
            weight = torch.empty(64, 64, 3, 3, **on_device)
            torch.nn.functional.conv2d(values, weight, padding=1)

        pipeline.unet.register_forward_pre_hook(convolve)

    trace = simulate("fp16", add_convolution)
    side_bytes, weight_bytes = 2 * 64 * 2**20, 2 * 64 * 64 * 9
    added = trace.modelled_peak_bytes[WHOLE] - trace.component_peak_bytes[WHOLE]
    assert added == pytest.approx(2 * side_bytes + weight_bytes, abs=MIB)
    assert trace.modelled_peak_bytes[RESERVED] >= trace.modelled_peak_bytes[WHOLE]
