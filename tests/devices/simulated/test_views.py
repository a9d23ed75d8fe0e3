"""A view that is known without asking torch is the view that torch makes of a real tensor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from fixtures.devices.simulated.private import (
    FakeTensor,
    entered,
    new_fake_mode,
    real_values,
    set_fake_cuda_up,
    storage_key,
)
from fixtures.devices.simulated.repeats import repeated
from fixtures.devices.simulated.views import view

aten = torch.ops.aten
CUDA = torch.device("cuda", 0)
places = some.integers(-7, 7)
maybe = some.none() | places


@pytest.fixture(autouse=True, scope="module")
def _fake() -> Iterator[None]:
    set_fake_cuda_up()
    with entered(new_fake_mode()):
        yield


def both(shape: list[int], axes: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """A real and a fake tensor of the same layout, which starts inside of its storage."""
    with real_values():
        real = torch.empty([length + 1 for length in shape])[tuple(slice(1, None) for _ in shape)]
        real = real.permute(axes)
    fake = torch.empty([length + 1 for length in shape], device=CUDA)
    return real, fake[tuple(slice(1, None) for _ in shape)].permute(axes)


def looks(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tuple(tensor.shape), tensor.stride(), tensor.storage_offset(), tensor.dtype


def is_as_torch_makes_it(
    operation: Any, real: torch.Tensor, fake: torch.Tensor, given_: tuple[Any, ...]
) -> bool:
    """Whether the view equals torch's; nothing is made where torch refuses it."""
    made = view(operation, (fake, *given_))
    try:
        with real_values():
            wanted = operation(real, *given_)
    except (IndexError, RuntimeError):
        return made is None
    assert isinstance(made, FakeTensor)
    assert made.fake_device == CUDA
    same_storage = storage_key(made.untyped_storage()) == storage_key(fake.untyped_storage())
    return looks(made) == looks(wanted) and same_storage


layouts = some.lists(some.integers(0, 4), min_size=1, max_size=3).flatmap(
    lambda shape: some.tuples(some.just(shape), some.permutations(range(len(shape))))
)


@given(layouts, some.integers(-4, 4), places)
def test_one_element_of_an_axis(layout: tuple[list[int], list[int]], axis: int, at: int) -> None:
    assert is_as_torch_makes_it(aten.select.int, *both(*layout), (axis, at))


@given(layouts, some.integers(-4, 4), maybe, maybe, some.integers(-1, 4))
def test_a_range_of_an_axis(
    layout: tuple[list[int], list[int]],
    axis: int,
    start: int | None,
    end: int | None,
    step: int,
) -> None:
    assert is_as_torch_makes_it(aten.slice.Tensor, *both(*layout), (axis, start, end, step))


@pytest.mark.parametrize("arguments", [(), (0,), (0, 1), (0, None, 2)])
def test_a_range_has_defaults(arguments: tuple[Any, ...]) -> None:
    assert is_as_torch_makes_it(aten.slice.Tensor, *both([3, 4], [1, 0]), arguments)


def test_all_else_is_left_to_torch() -> None:
    fake = torch.empty(3, 4, device=CUDA)

    assert view(aten.t.default, (fake,)) is None
    assert view(aten.select.int, (fake, 0, True)) is None
    assert repeated(aten.t.default, aten.t.default, (fake,), {}).shape == (4, 3)


def test_torch_is_not_asked_for_them() -> None:
    fake = torch.empty(3, 4, device=CUDA)

    def refuse(*_: Any) -> Any:
        raise AssertionError("torch was asked")

    rows = [repeated(refuse, aten.select.int, (fake, 0, row), {}) for row in range(3)]

    assert [row.storage_offset() for row in rows] == [0, 4, 8]


def test_a_view_of_a_tensor_with_a_gradient_is_torchs() -> None:
    weight = torch.nn.Parameter(torch.empty(3, 4, device=CUDA))

    assert repeated(aten.select.int, aten.select.int, (weight, 0, 1), {}).requires_grad
