"""The roofline: what one operation takes at least, and what decides over the whole."""

from __future__ import annotations

import pytest

from fixtures.devices.simulated.profiles import Profile
from fixtures.devices.simulated.roofline import Work

SLOW = Profile(
    id="slow",
    name="Round figures",
    memory_bytes=10**9,
    compute_capability=(8, 0),
    bandwidth_bytes_per_s=1000.0,
    host_link_bytes_per_s=10.0,
    flop_per_s={"fp32": 100.0, "tf32": 400.0, "fp16": 800.0},
    launch_s=0.5,
)
COMPUTES_3_S = (300, 0, "fp32")


def work(*operations: tuple[int, int, str], copied: int = 0, prefetched: int = 0) -> Work:
    made = Work(blocking_bytes=copied, prefetched_bytes=prefetched)
    for operation in operations:
        made.add(*operation)
    return made


@pytest.mark.parametrize(
    ("operations", "copied", "prefetched", "seconds"),
    [
        ([(300, 1000, "fp32")], 0, 0, 3.0),
        ([(50, 2000, "fp32")], 0, 0, 2.0),
        ([COMPUTES_3_S, (0, 2000, "fp32")], 0, 0, 5.0),  # not max(3, 2): the one waits
        ([(800, 0, "fp16")], 0, 0, 1.0),
        ([(800, 0, "bf16")], 0, 0, 8.0),  # which the device lacks: as fast as fp32 at best
        ([(0, 1000, "int64")], 0, 0, 1.0),
        ([(1, 1, "fp32")] * 10, 0, 0, 5.0),  # launches
        ([COMPUTES_3_S], 20, 0, 3.0 + 2.0),
        ([COMPUTES_3_S], 0, 40, 4.0),
        ([COMPUTES_3_S], 20, 40, 2.0 + 4.0),  # both take the same link
    ],
)
def test_arithmetic_or_traffic_decides_over_each_operation_and_the_longest_over_the_whole(
    operations: list[tuple[int, int, str]], copied: int, prefetched: int, seconds: float
) -> None:
    """Of computing, launching and prefetching; copies come on top."""
    assert work(*operations, copied=copied, prefetched=prefetched).bound_s(SLOW) == seconds


def test_work_is_added_as_often_as_it_is_done_and_taken_away() -> None:
    once = work(COMPUTES_3_S, copied=20, prefetched=30)
    thrice = once.plus(once, 2)
    assert thrice.bound_s(SLOW) == 9.0 + 6.0
    assert (thrice.blocking_bytes, thrice.prefetched_bytes) == (60, 90)
    assert thrice.plus(once, -3).bound_s(SLOW) == 0
    assert once.operations.total() == 1, "what was added to is as it was"
