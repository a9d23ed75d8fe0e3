"""The devices that can be simulated: figures that fit together, and the reply to a wrong id."""

from __future__ import annotations

import pytest

from fixtures.devices.keys import device_key
from fixtures.devices.simulated.profiles import (
    NUMBER_FORMATS,
    PROFILES,
    Profile,
    UnknownProfileError,
    find_profile,
)

MIB, GIB = 2**20, 2**30
EVERY = pytest.mark.parametrize("profile", PROFILES.values(), ids=list(PROFILES))


def test_every_device_is_found_by_its_id() -> None:
    ids = ["titan-rtx", "a100-40gb", "a100-80gb", "h100", "h200", "rtx-4090"]
    assert list(PROFILES) == ids
    assert [find_profile(one).id for one in ids] == ids


@pytest.mark.parametrize("wrong", ["", "H200", "b200"])
def test_an_unknown_id_is_answered_with_the_known_ones(wrong: str) -> None:
    with pytest.raises(UnknownProfileError) as raised:
        find_profile(wrong)
    assert str(raised.value) == (
        f"there is no simulated device {wrong!r}: choose one of titan-rtx, a100-40gb, a100-80gb, "
        "h100, h200, rtx-4090"
    )
    assert isinstance(raised.value, ValueError)


def test_every_device_has_a_key_of_its_own() -> None:
    keys = {device_key(profile.name, profile.memory_bytes) for profile in PROFILES.values()}
    assert keys == {
        "nvidia-titan-rtx",
        "nvidia-a100-sxm4-40gb",
        "nvidia-a100-sxm4-80gb",
        "nvidia-h100-80gb-hbm3",
        "nvidia-h200",
        "nvidia-geforce-rtx-4090",
    }


@pytest.mark.parametrize(
    ("profile_id", "sold_as_gib"),
    [
        ("titan-rtx", 24),
        ("a100-40gb", 40),
        ("a100-80gb", 80),
        ("h100", 80),
        ("h200", 141),
        ("rtx-4090", 24),
    ],
)
def test_the_driver_keeps_a_little_of_the_memory_that_is_sold(
    profile_id: str, sold_as_gib: int
) -> None:
    assert 0.98 < find_profile(profile_id).memory_bytes / (sold_as_gib * GIB) < 1


@EVERY
def test_the_formats_grow_faster_as_they_grow_narrower(profile: Profile) -> None:
    rates = profile.flop_per_s
    assert set(rates) <= set(NUMBER_FORMATS)
    assert rates["fp32"] <= rates.get("tf32", rates["fp32"]) < rates["fp16"]
    assert rates.get("bf16", rates["fp16"]) == rates["fp16"]


@EVERY
def test_bf16_tf32_and_flash_attention_came_with_ampere(profile: Profile) -> None:
    ampere = profile.compute_capability >= (8, 0)
    assert ("bf16" in profile.flop_per_s) is ampere
    assert ("tf32" in profile.flop_per_s) is ampere
    assert ("flash" in profile.attention_backends) is ampere


@EVERY
def test_hopper_prefers_cudnn_and_has_the_larger_workspace(profile: Profile) -> None:
    hopper = profile.compute_capability[0] == 9
    assert (profile.attention_backends[0] == "cudnn") is hopper
    assert profile.cublas_workspace_bytes == (32 * MIB if hopper else 8.125 * MIB)


@EVERY
def test_attention_falls_back_to_efficient_and_math(profile: Profile) -> None:
    order = [
        name
        for name in ("cudnn", "flash", "efficient", "math")
        if name in profile.attention_backends
    ]
    assert list(profile.attention_backends) == order
    assert order[-2:] == ["efficient", "math"]


@pytest.mark.parametrize(
    ("profile_id", "cores", "boost_hz"),
    [
        ("titan-rtx", 64, 1.770e9),
        ("a100-40gb", 64, 1.410e9),
        ("a100-80gb", 64, 1.410e9),
        ("h100", 128, 1.980e9),
        ("h200", 128, 1.980e9),
        ("rtx-4090", 128, 2.520e9),
    ],
)
def test_the_fp32_peak_is_that_of_the_multiprocessors(
    profile_id: str, cores: int, boost_hz: float
) -> None:
    profile = find_profile(profile_id)
    peak = profile.multiprocessors * cores * 2 * boost_hz
    assert profile.flop_per_s["fp32"] == pytest.approx(peak, rel=0.005)


def test_the_h200_is_an_h100_with_other_memory() -> None:
    h100, h200 = find_profile("h100"), find_profile("h200")
    assert h200.flop_per_s == h100.flop_per_s
    assert h200.memory_bytes > h100.memory_bytes
    assert h200.bandwidth_bytes_per_s > h100.bandwidth_bytes_per_s


@pytest.mark.parametrize(
    ("profile_id", "gigabytes_per_s"),
    [("titan-rtx", 15.75), ("a100-80gb", 31.51), ("rtx-4090", 31.51), ("h200", 63.02)],
)
def test_the_host_link_is_one_direction_of_pci_express(
    profile_id: str, gigabytes_per_s: float
) -> None:
    link = find_profile(profile_id).host_link_bytes_per_s
    assert link == pytest.approx(gigabytes_per_s * 1e9, rel=1e-3)
