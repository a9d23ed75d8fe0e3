"""Streams and events of the simulated device, as programs use them: which are races, which not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from fixtures.devices.simulated.simulation import DEVICE, Simulation

COUNT = 40_000
Race = Callable[[], str | None]


@pytest.fixture
def race(simulation: Simulation) -> Race:
    """The race so far."""
    return simulation.ordering.sentence


def test_the_current_stream_is_the_one_that_was_entered_last(simulation: Simulation) -> None:
    default = torch.cuda.default_stream()
    outer, inner = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(outer):
        with torch.cuda.stream(inner):
            assert torch.cuda.current_stream() is inner
            with torch.cuda.stream(None):
                assert torch.cuda.current_stream() is inner
        assert torch.cuda.current_stream() is outer
    assert torch.cuda.current_stream() is default


# What a copy brings to the host


def leaving() -> torch.Tensor:
    return torch.ones(COUNT, device=DEVICE).to("cpu", non_blocking=True)


@pytest.mark.parametrize(
    "read",
    [
        lambda host: host.numpy(),
        lambda host: host.zero_(),
        lambda host: torch.ones(COUNT, device=DEVICE) * host[0],
    ],
    ids=["numpy", "an operation on the host", "a number for the device"],
)
def test_the_host_reads_what_has_not_arrived(
    read: Callable[[torch.Tensor], object], race: Race
) -> None:
    host = leaving()
    torch.ones(1, device=DEVICE).cpu()  # which waits for all that was queued before
    read(host)
    assert race() is None
    read(leaving())
    assert "reads on the host what aten::_to_copy" in str(race())


# What the device reads


WAITS: dict[str, Callable[[torch.cuda.Stream], object]] = {
    "nothing": lambda side: None,
    "a stream for another": lambda side: torch.cuda.current_stream().wait_stream(side),
    "the host for a stream": lambda side: side.synchronize(),
    "the host for an event": lambda side: side.record_event().synchronize(),
    "the host for the device": lambda side: torch.cuda.synchronize(),
}
"""Who waits, for what is brought on a stream."""


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize(
    "read",
    [lambda t: t + 1, lambda t: t.sum().item(), torch.bincount, torch.repeat_interleave],
    ids=["sum", "item", "bincount", "repeat_interleave"],
)
def test_an_operation_reads_what_another_stream_brings(
    read: Callable[[torch.Tensor], object], wait: str, race: Race
) -> None:
    side, waits = torch.cuda.Stream(), wait != "nothing"
    with torch.cuda.stream(side):
        brought = torch.tensor([1, 2, 3]).to(DEVICE, non_blocking=True)
    WAITS[wait](side)
    read(brought)
    assert (race() is None) == waits
    assert waits or " on the default stream reads a tensor (int64 (3,)) that" in str(race())


def test_tensors_without_bytes_are_no_race(race: Race) -> None:
    """Their storages come and go at the same places."""
    side = torch.cuda.Stream()
    for _ in range(20):
        for stream in (side, torch.cuda.default_stream()):
            with torch.cuda.stream(stream):
                assert (torch.ones(0, device=DEVICE) + 1).numel() == 0
    assert race() is None


# Memory that is given away


@pytest.fixture
def freed_early(race: Race) -> torch.cuda.Stream:
    """The stream that brought a weight, which was freed while the default stream may read it."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        weight = torch.empty(COUNT).to(DEVICE, non_blocking=True)
    side.synchronize()
    assert (weight + 1).numel() == COUNT
    return side


@pytest.mark.parametrize("waits", [False, True])
def test_the_stream_of_a_weight_is_given_its_memory_again_and_has_to_wait_before_it_writes(
    waits: bool, freed_early: torch.cuda.Stream, race: Race
) -> None:
    for stream in (torch.cuda.Stream(), torch.cuda.default_stream()):
        with torch.cuda.stream(stream):
            # Here it is given to others, from the pool that all share; torch keeps it.
            torch.zeros(COUNT, device=DEVICE)
    with torch.cuda.stream(freed_early):
        again = torch.empty(COUNT, device=DEVICE)
        assert race() is None, "nothing is written yet"
        if waits:
            freed_early.wait_stream(torch.cuda.default_stream())
        again.zero_()
    assert (race() is None) == waits
    assert waits or "memory that aten::add in the pipeline on the default stream may" in str(race())
