"""The roofline: what one operation takes at least, and what decides over the whole."""

from __future__ import annotations

import pytest

from fixtures.devices.simulated.profiles import PROFILES, Profile
from fixtures.devices.simulated.roofline import Roofline

SLOW = Profile(
    id="slow",
    name="Round figures",
    memory_bytes=10**9,
    compute_capability=(8, 0),
    multiprocessors=1,
    bandwidth_bytes_per_s=1000.0,
    host_link_bytes_per_s=10.0,
    flop_per_s={"fp32": 100.0, "tf32": 400.0, "fp16": 800.0},
    launch_s=0.5,
)


@pytest.fixture
def roofline() -> Roofline:
    return Roofline(SLOW)


def test_nothing_takes_no_time(roofline: Roofline) -> None:
    assert roofline.bound_s == roofline.launches == 0


def test_arithmetic_dominates_an_operation(roofline: Roofline) -> None:
    roofline.add(flops=300, moved_bytes=1000, number_format="fp32")
    assert roofline.compute_bound_s == 3.0


def test_traffic_dominates_an_operation(roofline: Roofline) -> None:
    roofline.add(flops=50, moved_bytes=2000, number_format="fp32")
    assert roofline.compute_bound_s == 2.0


def test_each_operation_has_its_own_maximum(roofline: Roofline) -> None:
    roofline.add(flops=300, moved_bytes=0, number_format="fp32")
    roofline.add(flops=0, moved_bytes=2000, number_format="fp32")
    assert roofline.compute_bound_s == 5.0  # not max(3, 2): the one waits for the other
    assert roofline.launches == 2


@pytest.mark.parametrize(
    ("number_format", "seconds"),
    [("fp32", 8.0), ("tf32", 2.0), ("fp16", 1.0), ("bf16", 8.0)],
)
def test_the_number_format_decides_over_arithmetic(
    roofline: Roofline, number_format: str, seconds: float
) -> None:
    """bf16, which the device lacks, runs at the speed of fp32 at best."""
    roofline.add(flops=800, moved_bytes=0, number_format=number_format)
    assert roofline.compute_bound_s == seconds


def test_an_unknown_format_is_refused_where_it_matters(roofline: Roofline) -> None:
    roofline.add(flops=0, moved_bytes=1000, number_format="int64")
    with pytest.raises(ValueError, match="'float16' is none of fp32, tf32, fp16, bf16"):
        roofline.add(flops=1, moved_bytes=0, number_format="float16")
    assert roofline.launches == 1
    assert roofline.compute_bound_s == 1.0


def test_launches_dominate_many_small_operations(roofline: Roofline) -> None:
    for _ in range(10):
        roofline.add(flops=1, moved_bytes=1, number_format="fp32")
    assert roofline.launch_bound_s == 5.0
    assert roofline.bound_s == 5.0


def test_compute_dominates_a_large_operation(roofline: Roofline) -> None:
    roofline.add(flops=300, moved_bytes=0, number_format="fp32")
    assert roofline.bound_s == 3.0


def test_a_blocking_copy_comes_on_top(roofline: Roofline) -> None:
    roofline.add(flops=300, moved_bytes=0, number_format="fp32")
    roofline.add_copy(20)
    assert roofline.bound_s == 3.0 + 2.0
    assert roofline.launches == 1


def test_a_prefetch_hides_behind_compute(roofline: Roofline) -> None:
    roofline.add(flops=300, moved_bytes=0, number_format="fp32")
    roofline.add_copy(20, blocking=False)
    assert roofline.bound_s == 3.0


def test_a_prefetch_dominates_where_the_link_is_too_slow(roofline: Roofline) -> None:
    roofline.add(flops=300, moved_bytes=0, number_format="fp32")
    roofline.add_copy(40, blocking=False)
    assert roofline.bound_s == 4.0


def test_blocking_copies_and_prefetches_share_the_link(roofline: Roofline) -> None:
    roofline.add(flops=300, moved_bytes=0, number_format="fp32")
    roofline.add_copy(20)
    roofline.add_copy(40, blocking=False)
    assert roofline.bound_s == 2.0 + 4.0


def test_a_matrix_product_on_every_device() -> None:
    """4096 x 4096 in fp16: 137.4 GFLOP against 100.7 MB, so arithmetic decides everywhere."""
    flops, moved_bytes = 2 * 4096**3, 3 * 2 * 4096**2
    milliseconds = {}
    for profile in PROFILES.values():
        roofline = Roofline(profile)
        roofline.add(flops, moved_bytes, "fp16")
        assert roofline.bound_s == flops / profile.flop_per_s["fp16"]
        milliseconds[profile.id] = round(roofline.bound_s * 1000, 3)
    known = {
        "titan-rtx": 1.053,
        "a100-40gb": 0.441,
        "a100-80gb": 0.441,
        "h100": 0.139,
        "h200": 0.139,
        "rtx-4090": 0.832,
    }
    assert known.items() <= milliseconds.items()


def test_work_is_added_as_often_as_it_is_done_and_taken_away() -> None:
    once = Roofline(SLOW)
    once.add(flops=300, moved_bytes=0, number_format="fp32")
    once.add_copy(20)
    once.add_copy(30, blocking=False)
    thrice = once.work.plus(once.work, 2)
    assert Roofline(SLOW, thrice).compute_bound_s == 9.0
    assert (thrice.blocking_bytes, thrice.prefetched_bytes) == (60, 90)
    nothing = Roofline(SLOW, thrice.plus(once.work, -3))
    assert nothing.bound_s == nothing.launches == 0
    assert once.launches == 1  # what was added to is as it was
