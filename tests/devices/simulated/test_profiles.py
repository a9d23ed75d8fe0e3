"""The devices that can be simulated: figures that fit together, and the reply to a wrong id."""

from __future__ import annotations

import pytest

from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.devices.simulated.profiles import (
    PROFILES,
    Profile,
    UnknownProfileError,
    find_card,
    find_profile,
)

MIB, GIB = 2**20, 2**30
SOLD = {
    "rtx-3060": (12, 128, 1.777e9),
    "t4": (16, None, None),
    "rtx-4060-ti-16gb": (16, 128, 2.535e9),
    "rtx-4070-ti-super": (16, 128, 2.610e9),
    "a10g": (24, None, None),
    "l4": (24, 128, 2.040e9),
    "titan-rtx": (24, 64, 1.770e9),
    "rtx-4090": (24, 128, 2.520e9),
    "rtx-3090": (24, 128, 1.695e9),
    "rtx-5090": (32, 128, 2.407e9),
    "a100-40gb": (40, 64, 1.410e9),
    "l40s": (48, 128, 2.520e9),
    "h100": (80, 128, 1.980e9),
    "a100-80gb": (80, 64, 1.410e9),
    "h200": (141, 128, 1.980e9),
    "b200": (180, None, None),
}
"""By id, the least memory first: GiB as sold, cores a multiprocessor, and boost clock in Hz;
None where the maker's fp32 peak does not follow from them."""
WITH_ERROR_CORRECTION = ("t4", "l4", "a10g", "l40s")


@pytest.mark.parametrize("id_", SOLD)
def test_memory_and_fp32_peak_are_those_that_are_sold_less_what_the_driver_keeps(id_: str) -> None:
    """Error correction takes some more of GDDR6."""
    profile, (sold_gib, cores, boost_hz) = find_profile(id_), SOLD[id_]
    assert list(PROFILES) == list(SOLD)
    assert profile.id == id_
    low, high = (0.91, 0.94) if id_ in WITH_ERROR_CORRECTION else (0.965, 1)
    assert low < profile.memory_bytes / (sold_gib * GIB) < high
    if cores and boost_hz:
        peak = profile.multiprocessors * cores * 2 * boost_hz
        assert profile.flop_per_s["fp32"] == pytest.approx(peak, rel=0.005)


@pytest.mark.parametrize(
    ("wrong", "end"),
    [
        ("H200", "did you mean h200?"),
        ("gaudi", f"known: {', '.join(PROFILES)}."),
        ("12 GiBs", f"known: {', '.join(PROFILES)}."),
    ],
)
def test_an_unknown_id_is_answered_with_the_nearest_or_all(wrong: str, end: str) -> None:
    for find in (find_profile, find_card):
        with pytest.raises(UnknownProfileError) as raised:
            find(wrong)
        assert str(raised.value) == f"there is no simulated device {wrong!r}; {end}"
    assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize(
    ("text", "memory_bytes", "like"),
    [
        ("12GiB", 12 * GIB, "rtx-3060"),
        ("16 gib", 16 * GIB, "rtx-4060-ti-16gb"),
        ("24GB", 24_000_000_000, "l4"),
        ("0.5GiB", GIB // 2, "rtx-3060"),
    ],
)
def test_a_card_of_a_size_is_like_the_profile_that_is_nearest(
    text: str, memory_bytes: int, like: str
) -> None:
    card = find_card(text)
    assert card.memory_bytes == memory_bytes
    assert text in card.name
    assert PROFILES[like].name in card.name
    assert card.flop_per_s == PROFILES[like].flop_per_s
    assert SimulatedDevice(card).key == f"simulated-{text}"


@pytest.mark.parametrize("profile", PROFILES.values(), ids=list(PROFILES))
def test_what_came_with_a_generation(profile: Profile) -> None:
    rates = profile.flop_per_s
    assert set(rates) <= {"fp32", "tf32", "fp16", "bf16"}
    assert rates["fp32"] <= rates.get("tf32", rates["fp32"]) < rates["fp16"]
    assert rates.get("bf16", rates["fp16"]) == rates["fp16"]
    ampere, hopper = ((major, 0) <= profile.compute_capability for major in (8, 9))
    assert ("bf16" in rates) is ("tf32" in rates) is ampere
    first = {(9, 0): ["cudnn"], (10, 0): ["cudnn"]}.get(profile.compute_capability, [])
    fused = [*first, *(["flash"] if ampere else []), "efficient", "math"]
    fused += ["cudnn"] if ampere and not first else []
    assert list(profile.attention_backends) == fused
    assert profile.cublas_workspace_bytes == (32 * MIB if hopper else 8.125 * MIB)
