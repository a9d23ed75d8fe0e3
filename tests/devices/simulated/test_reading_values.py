"""What reads values of device tensors past `.item()`: the wait is counted, nothing is guessed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.devices.simulated.simulation import DEVICE, UnknownValueError
from fixtures.records.counts import COPIES_TO_DEVICE, OPERATIONS, SYNCS


@pytest.fixture
def totals() -> Iterator[Callable[[], dict[str, int]]]:
    """Inside the simulation: what has been counted so far."""
    device = SimulatedDevice()
    with device.entered():
        simulation = device._simulation
        assert simulation is not None
        yield lambda: dict(simulation.meter.counts().totals)


def levels() -> torch.Tensor:
    return torch.linspace(1, 0, 5, device=DEVICE)


def unknown() -> torch.Tensor:
    return torch.randn(20_000, device=DEVICE)[:5]


MAKERS: list[Callable[..., Any]] = [torch.tensor, torch.as_tensor, torch.asarray]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("device", [None, "cuda", DEVICE], ids=str)
def test_a_tensor_of_device_scalars_waits_for_each(
    make: Callable[..., Any], device: Any, totals: Callable[[], dict[str, int]]
) -> None:
    one, other = levels()[:2]
    before = totals()
    made = make([one, 3, other], **({} if device is None else {"device": device}))
    after = totals()
    assert after[SYNCS] - before[SYNCS] == 2 + (device is not None)  # for the copy
    assert after[OPERATIONS] - before[OPERATIONS] == 2
    assert after[COPIES_TO_DEVICE] - before[COPIES_TO_DEVICE] == (device is not None)
    assert made.is_cuda == (device is not None)
    assert made.tolist() == [1, 3, 0.75]


def test_the_constructor_of_tensors_waits_for_each_device_scalar(
    totals: Callable[[], dict[str, int]],
) -> None:
    """As Euler's scheduler makes the time steps of Stable Video Diffusion."""
    one, other = levels()[:2]
    before = totals()
    made = torch.Tensor([one, 3, other])
    assert totals()[SYNCS] - before[SYNCS] == 2
    assert (made.is_cuda, made.tolist()) == (False, [1, 3, 0.75])
    with pytest.raises(UnknownValueError):
        torch.Tensor([*unknown()[:1]])


def test_nested_lists_keep_their_shape_and_the_dtype_that_torch_gives(
    totals: Callable[[], dict[str, int]],
) -> None:
    half = levels().half()
    assert torch.tensor([[half[0], half[1]], (half[2], half[3])]).tolist() == [
        [1, 0.75],
        [0.5, 0.25],
    ]
    assert torch.tensor([half[0], half[1]]).dtype is torch.float16
    assert torch.tensor([half[0], 1.5]).dtype is torch.float32
    assert torch.tensor(data=[half[0]], dtype=torch.float64).dtype is torch.float64
    new = half.new_tensor([levels()[0], 2])
    assert (new.dtype, new.is_cuda, new.tolist()) == (torch.float16, True, [1, 2])


def test_a_list_without_device_tensors_waits_for_nothing(
    totals: Callable[[], dict[str, int]],
) -> None:
    before = totals()
    assert torch.tensor([1, 2.5, torch.tensor(3.0)]).tolist() == [1, 2.5, 3]
    assert torch.as_tensor(levels()).is_cuda
    assert totals()[SYNCS] == before[SYNCS]


MASKED: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], list[Any]]] = {
    "vector": (lambda x: x[x > 0.4], [1, 0.75, 0.5]),
    "nothing": (lambda x: x[x > 2], []),
    "rows": (lambda x: x.reshape(5, 1)[x > 0.6], [[1], [0.75]]),
    "rows and a slice": (lambda x: x.reshape(5, 1)[x > 0.6, :], [[1], [0.75]]),
    "columns": (lambda x: x.reshape(1, 5)[:, x > 0.6], [[1, 0.75]]),
    "matrix": (lambda x: x[:4].reshape(2, 2)[x[:4].reshape(2, 2) < 0.6], [0.5, 0.25]),
    "of bytes": (lambda x: x[(x > 0.4).to(torch.uint8)], [1, 0.75, 0.5]),
}


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
@pytest.mark.parametrize("case", MASKED)
def test_a_mask_waits_for_the_positions(case: str, totals: Callable[[], dict[str, int]]) -> None:
    index, wanted = MASKED[case]
    values = levels()
    before = totals()
    found = index(values)
    assert totals()[SYNCS] - before[SYNCS] == 1
    assert found.is_cuda
    assert found.tolist() == wanted


def test_known_positions_of_unknown_values_give_a_shape(
    totals: Callable[[], dict[str, int]],
) -> None:
    found = unknown()[levels() > 0.4]
    assert found.shape == (3,)
    with pytest.raises(UnknownValueError, match="values"):
        found.tolist()


READS: dict[str, Callable[[torch.Tensor], object]] = {
    "tensor": lambda x: torch.tensor([x[0], x[1]]),
    "as_tensor": lambda x: torch.as_tensor([x[0]], device=DEVICE),
    "mask": lambda x: x[x > 0],
    "unique": torch.unique,
    "bincount": lambda x: torch.bincount(x.abs().long()),
    "repeat_interleave": lambda x: torch.repeat_interleave(x, x.abs().long()),
    "allclose": lambda x: torch.allclose(x, x),
}


@pytest.mark.parametrize("case", READS)
def test_values_that_nobody_knows_are_one_sentence(
    case: str, totals: Callable[[], dict[str, int]]
) -> None:
    values = unknown()
    with pytest.raises(UnknownValueError, match="the simulation does not know") as caught:
        READS[case](values)
    assert str(caught.value).startswith("aten::")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("read", "wanted"),
    [
        (lambda x: torch.unique(x).tolist(), [0, 0.25, 0.5, 0.75, 1]),
        (lambda x: torch.bincount((4 * x).long()).tolist(), [1, 1, 1, 1, 1]),
        (lambda x: torch.repeat_interleave(x, (4 * x).long())[:5].tolist(), [1, 1, 1, 1, 0.75]),
        (lambda x: torch.allclose(x, x), True),
    ],
    ids=["unique", "bincount", "repeat_interleave", "allclose"],
)
def test_what_else_depends_on_known_values_goes_on(
    read: Callable[[torch.Tensor], object], wanted: object, totals: Callable[[], dict[str, int]]
) -> None:
    before = totals()
    assert read(levels()) == wanted
    assert totals()[SYNCS] > before[SYNCS]
