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
