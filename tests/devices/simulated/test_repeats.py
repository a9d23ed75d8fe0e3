"""What is remembered of an operation is what torch would give, and nothing that looks alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from fixtures.devices.simulated.private import (
    NEEDS_VALUES,
    FakeTensor,
    entered,
    new_fake_mode,
    real_values,
    set_fake_cuda_up,
    storage_key,
)
from fixtures.devices.simulated.repeats import repeated, view

aten = torch.ops.aten
CUDA = torch.device("cuda", 0)
Arguments = tuple[Any, ...]


@pytest.fixture(autouse=True, scope="module")
def _fake() -> Iterator[None]:
    set_fake_cuda_up()
    with entered(new_fake_mode()):
        yield


def ones(*shape: int, **options: Any) -> torch.Tensor:
    return torch.ones(shape, **{"device": CUDA, **options})


def channels_last() -> torch.Tensor:
    return ones(1, 2, 4, 4).to(memory_format=torch.channels_last)


def looks(result: Any) -> Any:
    """All of a result that anybody sees: tensors have no values here."""
    if isinstance(result, (list, tuple)):
        return type(result), [looks(one) for one in result]
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


DIFFER_IN_ONE_THING: dict[str, tuple[Any, Callable[[], Arguments], Callable[[], Arguments]]] = {
    "shape": (aten.exp.default, lambda: (ones(2, 3),), lambda: (ones(4, 3),)),
    "stride": (
        aten.clone.default,
        lambda: (ones(1, 2, 4, 4),),
        lambda: (channels_last(),),
    ),
    "dtype": (aten.exp.default, lambda: (ones(2),), lambda: (ones(2, dtype=torch.float16),)),
    "device": (aten.exp.default, lambda: (ones(2),), lambda: (ones(2, device="cpu"),)),
    "gradient": (
        aten.exp.default,
        lambda: (ones(4, 2),),
        lambda: (ones(4, 2, requires_grad=True),),
    ),
    "offset": (
        aten.alias.default,
        lambda: (ones(8)[:4],),
        lambda: (ones(8)[4:],),
    ),
    "value": (aten.sum.dim_IntList, lambda: (ones(2, 3), [0]), lambda: (ones(2, 3), [1])),
    "type of a number": (
        aten.mul.Scalar,
        lambda: (ones(2, dtype=torch.int64), 1),
        lambda: (ones(2, dtype=torch.int64), 1.0),
    ),
    "truth or number": (
        aten.mul.Scalar,
        lambda: (ones(2, dtype=torch.bool), True),
        lambda: (ones(2, dtype=torch.bool), 1),
    ),
    "tensors of a list": (
        aten.cat.default,
        lambda: ([ones(2), ones(2)],),
        lambda: ([ones(2), ones(2), ones(2)],),
    ),
    "where a list ends": (
        aten.avg_pool2d.default,
        lambda: (ones(1, 1, 8, 8), [2], [1, 1]),
        lambda: (ones(1, 1, 8, 8), [2, 1], [1]),
    ),
    "second tensor": (
        aten.mul.Tensor,
        lambda: (ones(2), ones(2)),
        lambda: (ones(2), ones(3, 1)),
    ),
}


@pytest.mark.parametrize("named", DIFFER_IN_ONE_THING)
def test_calls_that_differ_in_one_thing_are_told_apart(named: str) -> None:
    operation, one, other = DIFFER_IN_ONE_THING[named]
    for arguments in (one(), other()) * 2:
        found = repeated(operation, operation, arguments, {})
        assert looks(found) == looks(operation(*arguments))


def test_operations_are_told_apart() -> None:
    for operation in (aten.exp.default, aten.logical_not.default) * 2:
        found = repeated(operation, operation, (ones(2),), {})
        assert looks(found) == looks(operation(ones(2)))


@pytest.mark.parametrize(
    ("operation", "kwargs"),
    [
        (aten._to_copy.default, [{"dtype": torch.float16}, {"dtype": torch.bfloat16}]),
        (aten._to_copy.default, [{"device": CUDA}, {"device": torch.device("cpu")}]),
        (aten.slice.Tensor, [{"start": 1}, {"end": 1}]),
        (aten.new_empty.default, [{"dtype": torch.int64}, {"device": torch.device("cpu")}]),
    ],
)
def test_arguments_by_name_count(operation: Any, kwargs: list[dict[str, Any]]) -> None:
    for named in kwargs * 2:
        args = (ones(2), [3]) if operation is aten.new_empty.default else (ones(2),)
        found = repeated(operation, operation, args, named)
        assert looks(found) == looks(operation(*args, **named))


def test_the_default_dtype_counts() -> None:
    for dtype in (torch.float32, torch.float64) * 2:
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            whole = ones(2, dtype=torch.int64)
            found = repeated(aten.div.Tensor, aten.div.Tensor, (whole, whole), {})
        finally:
            torch.set_default_dtype(before)
        assert found.dtype is dtype


SEVERAL: dict[str, tuple[Any, Callable[[], Arguments]]] = {
    "a tuple": (aten.native_layer_norm.default, lambda: (ones(4, 8), [8], None, None, 1e-5)),
    "views": (aten.split.Tensor, lambda: (ones(4, 8)[1:], 2, 1)),
    "a tuple with numbers": (
        aten._scaled_dot_product_cudnn_attention.default,
        lambda: (*(ones(1, 2, 8, 16, dtype=torch.float16) for _ in range(3)), None, False),
    ),
}


@pytest.mark.parametrize("named", SEVERAL)
def test_several_outputs_are_as_torch_makes_them(named: str) -> None:
    operation, arguments = SEVERAL[named]
    args = arguments()
    for _ in range(3):
        assert looks(repeated(operation, operation, args, {})) == looks(operation(*args))


def test_new_tensors_have_their_own_storages_and_views_that_of_their_tensor() -> None:
    for _ in range(3):
        base = ones(4, 8)
        view = repeated(aten.slice.Tensor, aten.slice.Tensor, (base, 0, 1, 3), {})
        first = repeated(aten.exp.default, aten.exp.default, (base,), {})
        second = repeated(aten.exp.default, aten.exp.default, (base,), {})
        keys = [storage_key(one.untyped_storage()) for one in (base, view, first, second)]
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


def test_complex_numbers_and_inference_mode_are_left_to_torch() -> None:
    assert asked(aten.exp.default, lambda: (ones(2, 5, dtype=torch.complex64),), 2) == 2
    before = ones(2, 5, 7)
    assert asked(aten.exp.default, lambda: (before,), 2) == 1
    with torch.inference_mode():
        assert asked(aten.exp.default, lambda: (before,), 2) == 2
        inside = ones(2, 5, 7)
    assert asked(aten.exp.default, lambda: (inside,), 2) == 2


def test_known_constants_stay_known() -> None:
    for _ in range(3):
        constant: Any = torch.tensor(2.0)
        assert constant.constant is not None
        found = repeated(aten.mul.Tensor, aten.mul.Tensor, (constant, constant), {})
        assert found.item() == 4


def test_outputs_that_share_a_new_storage_share_it_again() -> None:
    def function(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        made = torch.empty_like(tensor)
        return made, made

    for _ in range(3):
        one, other = repeated(function, aten.exp.default, (ones(11, 13),), {})
        assert storage_key(one.untyped_storage()) == storage_key(other.untyped_storage())


def test_a_tensor_in_a_larger_storage_is_made_by_torch() -> None:
    def function(tensor: torch.Tensor) -> torch.Tensor:
        return torch.empty(32, device=CUDA)[: tensor.numel()]

    for _ in range(3):
        found = repeated(function, aten.exp.default, (ones(17),), {})
        assert found.untyped_storage().nbytes() == 32 * 4


def asked(operation: Any, arguments: Callable[[], Arguments], times: int) -> int:
    """How often torch is asked where the same call comes so many times."""
    calls = []

    def function(*args: Any) -> Any:
        calls.append(args)
        return operation(*args)

    for _ in range(times):
        repeated(function, operation, arguments(), {})
    return len(calls)


def test_torch_is_asked_once_for_what_comes_again() -> None:
    assert asked(aten.exp.default, lambda: (ones(3, 5, 7, 9),), 3) == 1


# Views that are known without asking torch are those that torch makes of a real tensor

places = some.integers(-7, 7)
maybe = some.none() | places


def both(shape: list[int], axes: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """A real and a fake tensor of the same layout, which starts inside of its storage."""
    with real_values():
        real = torch.empty([length + 1 for length in shape])[tuple(slice(1, None) for _ in shape)]
        real = real.permute(axes)
    fake = torch.empty([length + 1 for length in shape], device=CUDA)
    return real, fake[tuple(slice(1, None) for _ in shape)].permute(axes)


def layout_of(tensor: torch.Tensor) -> tuple[Any, ...]:
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
    return layout_of(made) == layout_of(wanted) and same_storage


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
