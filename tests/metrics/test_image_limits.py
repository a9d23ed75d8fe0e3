"""How far images may be from others: a multiple of what was measured, and what nobody can see."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from fixtures.catalogue.workloads import WORKLOADS
from fixtures.metrics import image_limits as module
from fixtures.metrics.image_limits import (
    FLIP_SAFETY,
    INVISIBLE,
    KEYS,
    MEASURED,
    NONE,
    ROUNDING,
    SAFETY,
    Variation,
    harmless_variation,
    is_rounding,
    limits,
    variation_of,
)
from fixtures.records.images import FP32, STORED, Likeness
from tests.support.scenarios import find_scenario

FAR = Variation(channel=0.1, flip=0.2, flip_max=0.3, largest=0.05)
EQUAL = Likeness(1.0, 0.0, 0.0, 0.0, 0.0)


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the test writes what was measured."""
    path = tmp_path / "harmless.json"
    monkeypatch.setattr(module, "MEASURED", path)
    module.measured_variation.cache_clear()
    yield path
    module.measured_variation.cache_clear()


def test_a_limit_is_a_multiple_of_what_was_measured() -> None:
    limit = limits(FAR, FP32)
    assert limit == {
        "channel": SAFETY * 0.1,
        "flip": FLIP_SAFETY * 0.2,
        "flip_max": FLIP_SAFETY * 0.3,
    }, "a single value may differ from fp32's"
    assert limits(FAR, STORED)["largest"] == pytest.approx(0.5 / 255 + SAFETY * 0.05)


@pytest.mark.parametrize("whose", [FP32, STORED])
def test_no_limit_is_below_what_can_be_seen(whose: str) -> None:
    for harmless in (NONE, Variation(1e-9, 1e-9, 1e-9, 1e-9)):
        limit = limits(harmless, whose)
        assert (limit["channel"], limit["flip"], limit["flip_max"]) == (
            *(INVISIBLE.channel, INVISIBLE.flip, INVISIBLE.flip_max),
        )
    assert limits(NONE, STORED)["largest"] == ROUNDING
    assert "largest" not in limits(NONE, FP32)


def test_the_largest_difference_of_any_image_is_harmless() -> None:
    images = [Likeness(0.5, 0.1, 0.02, 0.3, 0.4), Likeness(0.9, 0.2, 0.01, 0.1, 0.9)]
    assert variation_of(images) == Variation(0.02, 0.3, 0.9, 0.2)
    assert variation_of([Likeness(0.9, 0.2, 0.01)]) == Variation(0.01, 0.0, 0.0, 0.2)


@pytest.mark.parametrize(
    ("images", "rounding"),
    [
        ([EQUAL], True),
        ([], False),
        ([Likeness(1.0, 1 / 255, 0.01 / 255, 0.0, 0.0)], True),
        ([Likeness(1.0, 2 / 255, 0.01 / 255, 0.0, 0.0)], False),
        ([Likeness(1.0, 1 / 255, 0.5 / 255, 0.0, 0.0)], False),
        ([EQUAL, Likeness(1.0, 2 / 255, 0.0, 0.0, 0.0)], False),
        ([Likeness(1.0, float("nan"), 0.0, 0.0, 0.0)], False),
    ],
    ids=["equal", "none", "by one", "by two", "every value", "one of a batch", "NaN"],
)
def test_single_values_that_differ_by_one_are_rounding(
    images: list[Likeness], rounding: bool
) -> None:
    assert is_rounding(images) is rounding


def test_variation_is_of_the_device_the_workload_and_the_technique(measured: Path) -> None:
    fp32, stored = (
        {"channel": 0.1, "flip": 0.2, "flip_max": 0.3, "largest": largest} for largest in (0.4, 0.5)
    )
    document = {
        "cpu": {"storybook": {"fp16": {"fp32": fp32, "stored": stored}, "bf16": {"fp32": fp32}}}
    }
    measured.write_text(json.dumps(document), encoding="utf-8")
    variations = harmless_variation("cpu", "storybook", "fp16")
    assert variations == {
        FP32: Variation(0.1, 0.2, 0.3, 0.4),
        STORED: Variation(0.1, 0.2, 0.3, 0.5),
    }
    assert harmless_variation("cpu", "storybook", "bf16").keys() == {FP32}
    for other in (
        ("cuda", "storybook", "fp16"),
        ("cpu", "sd15", "fp16"),
        ("cpu", "storybook", "sdpa"),
    ):
        assert harmless_variation(*other) == {}
    scenario = find_scenario("storybook", "fp16")
    assert scenario.harmless("cpu") == variations
    assert find_scenario("storybook", "fp16", "my/pipeline").harmless("cpu") == {}


def test_what_is_stored_is_of_known_scenarios_and_sound() -> None:
    document = json.loads(MEASURED.read_text(encoding="utf-8"))
    for device, workloads in document.items():
        for workload, techniques in workloads.items():
            assert workload in WORKLOADS
            for technique, by_whom in techniques.items():
                find_scenario(workload, technique)
                assert by_whom.keys() <= KEYS.keys()
                variations = harmless_variation(device, workload, technique)
                for variation in variations.values():
                    assert isinstance(variation, Variation)
                    values = [getattr(variation, field.name) for field in fields(variation)]
                    assert all(value is None or 0 <= value <= 1 for value in values)
