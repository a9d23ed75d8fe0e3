"""The devices that can be simulated: figures that fit together, and the reply to a wrong id."""

from __future__ import annotations

import pytest

from fixtures.devices.keys import device_key
from fixtures.devices.simulated.profile import NUMBER_FORMATS, Profile
from fixtures.devices.simulated.profiles import PROFILES, UnknownProfileError, find_profile

MIB, GIB = 2**20, 2**30
EVERY = pytest.mark.parametrize("profile", PROFILES.values(), ids=list(PROFILES))


IDS = [
    "rtx-3060",
    "t4",
    "rtx-4060-ti-16gb",
    "rtx-4070-ti-super",
    "a10g",
    "l4",
    "titan-rtx",
    "rtx-4090",
    "rtx-3090",
    "a100-40gb",
    "l40s",
    "h100",
    "a100-80gb",
    "h200",
    "b200",
]


def test_every_device_is_found_by_its_id() -> None:
    assert list(PROFILES) == [*IDS[:9], "rtx-5090", *IDS[9:]]
    assert [find_profile(one).id for one in IDS] == IDS


@pytest.mark.parametrize("wrong", ["", "H200", "rtx-2080"])
def test_an_unknown_id_is_answered_with_the_known_ones(wrong: str) -> None:
    with pytest.raises(UnknownProfileError) as raised:
        find_profile(wrong)
    assert str(raised.value) == (
        f"there is no simulated device {wrong!r}: choose one of {', '.join(PROFILES)}"
    )
    assert isinstance(raised.value, ValueError)


def test_every_device_has_a_key_of_its_own() -> None:
    keys = [device_key(profile.name, profile.memory_bytes) for profile in PROFILES.values()]
    assert len(set(keys)) == len(keys)
    assert keys[0] == "nvidia-geforce-rtx-3060-12gb"
    assert {"nvidia-h200", "nvidia-a100-sxm4-40gb", "nvidia-h100-80gb-hbm3"} <= set(keys)


@pytest.mark.parametrize(
    ("profile_id", "sold_as_gib"),
    [
        ("rtx-3060", 12),
        ("rtx-4060-ti-16gb", 16),
        ("rtx-4070-ti-super", 16),
        ("titan-rtx", 24),
        ("rtx-3090", 24),
        ("rtx-4090", 24),
        ("rtx-5090", 32),
        ("a100-40gb", 40),
        ("a100-80gb", 80),
        ("h100", 80),
        ("h200", 141),
        ("b200", 180),
    ],
)
def test_the_driver_keeps_a_little_of_the_memory_that_is_sold(
    profile_id: str, sold_as_gib: int
) -> None:
    assert 0.965 < find_profile(profile_id).memory_bytes / (sold_as_gib * GIB) < 1


@pytest.mark.parametrize(
    ("profile_id", "sold_as_gib"), [("t4", 16), ("l4", 24), ("a10g", 24), ("l40s", 48)]
)
def test_error_correction_takes_some_more_of_gddr6(profile_id: str, sold_as_gib: int) -> None:
    assert 0.91 < find_profile(profile_id).memory_bytes / (sold_as_gib * GIB) < 0.94


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
def test_cudnn_is_preferred_and_the_workspace_larger_since_hopper(profile: Profile) -> None:
    capability = profile.compute_capability
    assert (profile.attention_backends[0] == "cudnn") is (capability in ((9, 0), (10, 0)))
    since_hopper = capability >= (9, 0)
    assert profile.cublas_workspace_bytes == (32 * MIB if since_hopper else 8.125 * MIB)


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
        ("rtx-3060", 128, 1.777e9),
        ("rtx-3090", 128, 1.695e9),
        ("rtx-4060-ti-16gb", 128, 2.535e9),
        ("rtx-4070-ti-super", 128, 2.610e9),
        ("rtx-5090", 128, 2.407e9),
        ("l40s", 128, 2.520e9),
        ("l4", 128, 2.040e9),
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
    [
        ("titan-rtx", 15.75),
        ("rtx-4060-ti-16gb", 15.75),
        ("a100-80gb", 31.51),
        ("rtx-4090", 31.51),
        ("h200", 63.02),
        ("rtx-5090", 63.02),
    ],
)
def test_the_host_link_is_one_direction_of_pci_express(
    profile_id: str, gigabytes_per_s: float
) -> None:
    link = find_profile(profile_id).host_link_bytes_per_s
    assert link == pytest.approx(gigabytes_per_s * 1e9, rel=1e-3)
