"""What is remembered of an operation is what torch would give, and nothing that looks alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from fixtures.devices.simulated.private import (
    NEEDS_VALUES,
    FakeTensor,
    FakeTensorMode,
    entered,
    real_values,
    set_fake_cuda_up,
    storage_key,
)
from fixtures.devices.simulated.repeats import repeated

aten = torch.ops.aten
CUDA = torch.device("cuda", 0)
Arguments = tuple[Any, ...]


@pytest.fixture(autouse=True, scope="module")
def _fake() -> Iterator[None]:
    set_fake_cuda_up()
    with entered(FakeTensorMode(allow_non_fake_inputs=True)):
        yield


def ones(*shape: int, **options: Any) -> torch.Tensor:
    return torch.ones(shape, **{"device": CUDA, **options})


def looks(result: Any) -> Any:
    """All of a result that anybody sees: tensors have no values here."""
    if isinstance(result, (list, tuple)):
        return type(result), [looks(output) for output in result]
    if not isinstance(result, torch.Tensor):
        return result
    assert isinstance(result, FakeTensor)
    return (
        result.shape,
        result.stride(),
        result.dtype,
        result.storage_offset(),
        result.fake_device,
        result.untyped_storage().nbytes(),
        result.requires_grad,
    )


Call = tuple[Any, Arguments, dict[str, Any]]
EXP, MUL = aten.exp.default, aten.mul.Scalar


def call(operation: Any, *args: Any, **kwargs: Any) -> Call:
    return operation, args, kwargs


CALLS: dict[str, Callable[[], list[Call]]] = {
    "operation": lambda: [call(EXP, ones(2)), call(aten.logical_not.default, ones(2))],
    "stride": lambda: [
        call(aten.clone.default, ones(1, 2, 4, 4)),
        call(aten.clone.default, ones(1, 2, 4, 4).to(memory_format=torch.channels_last)),
    ],
    "dtype": lambda: [call(EXP, ones(2)), call(EXP, ones(2, dtype=torch.float16))],
    "device": lambda: [call(EXP, ones(2)), call(EXP, ones(2, device="cpu"))],
    "gradient": lambda: [call(EXP, ones(4, 2)), call(EXP, ones(4, 2, requires_grad=True))],
    "offset": lambda: [call(aten.alias.default, ones(8)[start:][:4]) for start in (0, 4)],
    "value": lambda: [call(aten.sum.dim_IntList, ones(2, 3), [axis]) for axis in (0, 1)],
    "type of a number": lambda: [call(MUL, ones(2, dtype=torch.int64), by) for by in (1, 1.0)],
    "tensors of a list": lambda: [call(aten.cat.default, [ones(2)] * count) for count in (2, 3)],
    "where a list ends": lambda: [
        call(aten.avg_pool2d.default, ones(1, 1, 8, 8), [2], [1, 1]),
        call(aten.avg_pool2d.default, ones(1, 1, 8, 8), [2, 1], [1]),
    ],
    "which name": lambda: [
        call(aten.new_empty.default, ones(2), [3], dtype=torch.int64),
        call(aten.new_empty.default, ones(2), [3], device=torch.device("cpu")),
    ],
    "nothing: a tuple": lambda: [
        call(aten.native_layer_norm.default, ones(4, 8), [8], None, None, 1e-5)
    ],
    "nothing: views": lambda: [call(aten.split.Tensor, ones(4, 8)[1:], 2, 1)],
}
"""By what they differ in."""


@pytest.mark.parametrize("named", CALLS)
def test_calls_that_differ_in_one_thing_are_told_apart(named: str) -> None:
    for operation, args, kwargs in CALLS[named]() * 3:
        made = repeated(operation, operation, args, kwargs)
        assert looks(made) == looks(operation(*args, **kwargs))


def test_the_default_dtype_counts() -> None:
    for dtype in (torch.float32, torch.float64) * 2:
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            whole = ones(2, dtype=torch.int64)
            quotient = repeated(aten.div.Tensor, aten.div.Tensor, (whole, whole), {})
        finally:
            torch.set_default_dtype(before)
        assert quotient.dtype is dtype


def test_new_tensors_have_their_own_storages_and_views_that_of_their_tensor() -> None:
    for _ in range(3):
        base = ones(4, 8)
        view = repeated(aten.slice.Tensor, aten.slice.Tensor, (base, 0, 1, 3), {})
        first = repeated(aten.exp.default, aten.exp.default, (base,), {})
        second = repeated(aten.exp.default, aten.exp.default, (base,), {})
        keys = [storage_key(t.untyped_storage()) for t in (base, view, first, second)]
        assert keys[0] == keys[1]
        assert len(set(keys)) == 3
        written = repeated(aten.add_.Tensor, aten.add_.Tensor, (first, second), {})
        assert written is first


def test_what_depends_on_values_is_never_remembered() -> None:
    for _ in range(2):
        with pytest.raises(NEEDS_VALUES):
            repeated(aten.nonzero.default, aten.nonzero.default, (ones(4),), {})
    indices = [torch.zeros(2, dtype=torch.int64, device=CUDA)]
    assert asked(aten.index.Tensor, lambda: (ones(4), indices), 3) == 3


def test_an_operation_that_changes_what_its_argument_is_does_so_again() -> None:
    for _ in range(3):
        turned, other = ones(2, 3), ones(2, 3)
        assert repeated(aten.t_.default, aten.t_.default, (turned,), {}) is turned
        assert turned.shape == (3, 2)
        function = aten.set_.source_Tensor
        repeated(function, function, (other, turned), {})
        assert storage_key(other.untyped_storage()) == storage_key(turned.untyped_storage())


def test_torch_is_asked_once_but_for_complex_numbers_and_inference_mode() -> None:
    before = ones(3, 5, 7, 9)
    assert asked(EXP, lambda: (before,), 3) == 1
    norm = aten.native_layer_norm.default, (before, [9], None, None, 1e-5)
    assert asked(norm[0], lambda: norm[1], 3) == 1
    outputs = [*repeated(norm[0], *norm, {}), *repeated(norm[0], *norm, {})]
    assert len({storage_key(output.untyped_storage()) for output in outputs}) == 6
    attention = aten._scaled_dot_product_flash_attention.default
    assert asked(attention, lambda: (before, before, before), 3) == 1
    assert asked(EXP, lambda: (ones(2, 5, dtype=torch.complex64),), 2) == 2
    with torch.inference_mode():
        assert asked(EXP, lambda: (before,), 2) == 2
        inside = ones(2, 5, 7)
    assert asked(EXP, lambda: (inside,), 2) == 2


def test_known_constants_stay_known() -> None:
    for _ in range(3):
        constant: Any = torch.tensor(2.0)
        assert constant.constant is not None
        product = repeated(aten.mul.Tensor, aten.mul.Tensor, (constant, constant), {})
        assert product.item() == 4


def test_an_output_in_a_larger_storage_is_so_again() -> None:
    def in_a_larger_one(tensor: torch.Tensor) -> torch.Tensor:
        return torch.empty(32, device=CUDA)[: tensor.numel()]

    for _ in range(3):
        part = repeated(in_a_larger_one, EXP, (ones(17),), {})
        assert part.untyped_storage().nbytes() == 32 * 4


def asked(operation: Any, arguments: Callable[[], Arguments], times: int) -> int:
    """How often torch is asked where the same call comes so many times."""
    calls = []

    def function(*args: Any) -> Any:
        calls.append(args)
        return operation(*args)

    for _ in range(times):
        repeated(function, operation, arguments(), {})
    return len(calls)


# Views are those that torch makes of a real tensor


def inner(whole: torch.Tensor) -> torch.Tensor:
    """A view that starts inside of its storage, of shape (3, 4, 2)."""
    return whole[1:, 1:, 1:].permute(2, 1, 0)


@pytest.mark.parametrize(
    ("operation", "args"),
    [
        (aten.select.int, (0, 1)),
        (aten.select.int, (-1, -2)),
        (aten.slice.Tensor, ()),
        (aten.slice.Tensor, (1, -3, None, 2)),
        (aten.slice.Tensor, (2, 5, 7)),
        (aten.unbind.int, (1,)),
        (aten.detach.default, ()),
        (aten.select.int, (0, 3)),  # there is none
        (aten.slice.Tensor, (0, 0, 1, 0)),  # no steps
    ],
)
def test_an_element_or_a_range_of_an_axis_is_as_torch_makes_it(
    operation: Any, args: tuple[Any, ...]
) -> None:
    fake = inner(torch.empty(3, 5, 4, device=CUDA))
    with real_values():
        real = inner(torch.empty(3, 5, 4))
    try:
        with real_values():
            wanted = operation(real, *args)
    except (IndexError, RuntimeError) as error:
        with pytest.raises(type(error)):
            repeated(operation, operation, (fake, *args), {})
        return
    made = repeated(pytest.fail, operation, (fake, *args), {})
    pairs = [(made, wanted)] if isinstance(made, FakeTensor) else zip(made, wanted, strict=True)
    for view, expected in pairs:
        assert view.fake_device == CUDA
        assert (view.shape, view.stride()) == (expected.shape, expected.stride())
        assert (view.storage_offset(), view.dtype) == (expected.storage_offset(), expected.dtype)
        assert storage_key(view.untyped_storage()) == storage_key(fake.untyped_storage())


def test_views_of_what_has_a_gradient_are_torch_s() -> None:
    weight = torch.nn.Parameter(torch.empty(3, 4, device=CUDA))
    assert repeated(aten.select.int, aten.select.int, (weight, 0, 1), {}).requires_grad
