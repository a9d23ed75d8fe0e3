"""What reads values of device tensors past `.item()`: the wait is counted, nothing is guessed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from fixtures.devices.simulated.simulation import DEVICE, Simulation, UnknownValueError
from fixtures.records.counts import COPIES_TO_DEVICE, OPERATIONS, SYNCS, Counts


@pytest.fixture
def totals(simulation: Simulation) -> Callable[[], dict[str, int]]:
    """What has been counted so far."""

    def read() -> dict[str, int]:
        counts = Counts.of(simulation.meter.tally)
        return {kind: counts.total(kind) for kind in counts.kinds}

    return read


def levels() -> torch.Tensor:
    return torch.linspace(1, 0, 5, device=DEVICE)


def unknown() -> torch.Tensor:
    return torch.randn(20_000, device=DEVICE)[:5]


MAKERS = [
    *((torch.tensor, device) for device in (None, "cuda", DEVICE)),
    *((make, "cuda") for make in (torch.as_tensor, torch.asarray)),
    (torch.Tensor, None),  # as Euler's scheduler makes time steps of Stable Video Diffusion
]


@pytest.mark.parametrize(
    ("make", "device"), MAKERS, ids=lambda value: getattr(value, "__name__", str(value))
)
def test_a_tensor_of_device_scalars_waits_for_each(
    make: Callable[..., Any], device: Any, totals: Callable[[], dict[str, int]]
) -> None:
    first, second = levels()[:2]
    before = totals()
    made = make([first, 3, second], **({} if device is None else {"device": device}))
    after = totals()
    assert after[SYNCS] - before[SYNCS] == 2 + (device is not None)  # for the copy
    assert after[OPERATIONS] - before[OPERATIONS] == 2
    assert after[COPIES_TO_DEVICE] - before[COPIES_TO_DEVICE] == (device is not None)
    assert made.is_cuda == (device is not None)
    assert made.tolist() == [1, 3, 0.75]
    with pytest.raises(UnknownValueError, match="the simulation does not know"):
        make([unknown()[0]])


@pytest.mark.usefixtures("simulation")
def test_nested_lists_keep_their_shape_and_the_dtype_that_torch_gives() -> None:
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


READS: dict[str, tuple[Callable[[torch.Tensor], Any], Any]] = {
    "mask of a vector": (lambda x: x[x > 0.4], [1, 0.75, 0.5]),
    "mask of nothing": (lambda x: x[x > 2], []),
    "mask of rows": (lambda x: x.reshape(5, 1)[x > 0.6], [[1], [0.75]]),
    "mask of rows and a slice": (lambda x: x.reshape(5, 1)[x > 0.6, :], [[1], [0.75]]),
    "mask of columns": (lambda x: x.reshape(1, 5)[:, x > 0.6], [[1, 0.75]]),
    "mask of a matrix": (lambda x: x[:4].reshape(2, 2)[x[:4].reshape(2, 2) < 0.6], [0.5, 0.25]),
    "mask of bytes": (lambda x: x[(x > 0.4).to(torch.uint8)], [1, 0.75, 0.5]),
    "unique": (torch.unique, [0, 0.25, 0.5, 0.75, 1]),
    "bincount": (lambda x: torch.bincount((4 * x).abs().long()), [1, 1, 1, 1, 1]),
    "repeat_interleave": (
        lambda x: torch.repeat_interleave(x, (4 * x).abs().long()),
        [1, 1, 1, 1, 0.75, 0.75, 0.75, 0.5, 0.5, 0.25],
    ),
    "allclose": (lambda x: torch.allclose(x, x), True),
}
"""What depends on values, and what it gives of `levels`."""


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
@pytest.mark.parametrize("case", READS)
def test_known_values_are_waited_for_and_unknown_ones_are_refused_in_one_sentence(
    case: str, totals: Callable[[], dict[str, int]]
) -> None:
    read, wanted = READS[case]
    values = levels()
    before = totals()
    result = read(values)
    assert totals()[SYNCS] - before[SYNCS] == 1
    assert (result.tolist() if isinstance(result, torch.Tensor) else result) == wanted
    assert result is True or result.is_cuda
    values = unknown()
    assert values[levels() > 0.4].shape == (3,)
    with pytest.raises(UnknownValueError, match="the simulation does not know") as caught:
        read(values)
    assert str(caught.value).startswith("aten::")
    assert "\n" not in str(caught.value)
