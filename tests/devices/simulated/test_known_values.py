"""Which values the simulation knows: positions and masks of any size, and one number throughout."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses import fake_tensor

from fixtures.devices.simulated.private import NOT_PASSED_ON
from fixtures.devices.simulated.shadows import MAX_INT_ELEMENTS, shadow_of
from fixtures.devices.simulated.simulation import DEVICE, UnknownValueError


def test_positions_of_a_large_image_are_known() -> None:
    """FLUX.2 finds the size of the image by them."""
    rows = torch.arange(64, device=DEVICE).repeat_interleave(64)
    columns = torch.arange(64, device=DEVICE).repeat(64)
    flat = rows * (columns.max() + 1) + columns
    assert flat.max().item() == 64 * 64 - 1


pytestmark = pytest.mark.usefixtures("simulation")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.int64])
def test_one_number_throughout_is_known_in_any_shape(dtype: torch.dtype) -> None:
    """HunyuanVideo 1.5 asks whether the embeddings of an image are all zero."""
    zeros = torch.zeros(1, 729, 1152, dtype=dtype, device=DEVICE)
    assert bool(torch.all(zeros == 0))
    assert not bool(torch.any(torch.ones(1, 900, 900, dtype=dtype, device=DEVICE) == 0))
    assert torch.full((900, 900), 3, dtype=dtype, device=DEVICE)[7, 8].item() == 3


def test_joined_zeros_are_one_number_throughout() -> None:
    """HunyuanImage asks whether its second encoder was given a text."""
    zeros = torch.zeros(1, 128, 1472, device=DEVICE)
    assert bool(torch.all(torch.cat([zeros, zeros]).repeat(1, 2, 1).view(4, 128, -1) == 0))
    with pytest.raises(UnknownValueError):
        torch.cat([zeros, zeros + 1])[0, 0, 0].item()


def test_what_is_written_into_one_number_throughout_is_no_longer_that() -> None:
    small, zeros = torch.zeros(10, 20, device=DEVICE), torch.zeros(100, 200, device=DEVICE)
    row = zeros[0]
    assert zeros[3, 4:9].sum().item() == 0.0
    assert zeros.view(200, 100).t()[5, 5].item() == 0.0
    zeros[3, 4] = 7.0
    for element in (
        zeros[0, 0],
        zeros[3, 4],
        row[0],
        (zeros + torch.randn(1, device=DEVICE))[0, 0],
    ):
        with pytest.raises(UnknownValueError):
            element.item()
    small[3, 4] = 7.0
    small[5] += 1.0
    assert small.sum().item() == 27.0, "all of its elements are known"


def test_a_mask_is_not_computed_where_it_is_repeated_beyond_reason() -> None:
    """A joint attention mask of a video has billions of elements."""
    mask = torch.ones(1, 50_000, dtype=torch.bool, device=DEVICE)
    repeated = mask.view(1, 1, 1, -1).repeat(1, 1, 50_000, 1)
    assert repeated.numel() > MAX_INT_ELEMENTS
    assert shadow_of(repeated) is None
    assert shadow_of(mask) is not None


@pytest.mark.skipif(
    not hasattr(fake_tensor, NOT_PASSED_ON),
    reason="this torch makes no fake tensor of another one's attributes",
)
def test_a_tensor_that_is_made_of_another_one_s_attributes_has_none_of_its_values() -> None:
    """transformers 4 makes the empty weights of a model so."""
    weight = torch.nn.Parameter(torch.ones(3, device=DEVICE))
    assert shadow_of(weight) is not None
    vars(weight)["requires_grad"] = True
    made = type(weight)(weight.to("meta"), **vars(weight))
    assert shadow_of(made) is None
