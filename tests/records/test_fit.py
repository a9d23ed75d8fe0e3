"""What fits, in which order, and which way is the choice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fixtures.records.fit import (
    FASTEST,
    LEAST_CARD,
    LEAST_HOST,
    MAX_CONTEXT_BYTES,
    MIN_CONTEXT_BYTES,
)
from fixtures.records.units import GIB
from tests.support.fits import fit, way


@pytest.mark.parametrize(
    ("left_bytes", "fits"),
    [
        (MAX_CONTEXT_BYTES, "yes"),
        (MAX_CONTEXT_BYTES - 1, "barely"),
        (MIN_CONTEXT_BYTES, "barely"),
        (MIN_CONTEXT_BYTES - 1, "no"),
        (-GIB, "no"),
    ],
)
def test_a_context_needs_room_too(left_bytes: int, fits: str) -> None:
    configuration = way(needed_bytes=24 * GIB - left_bytes)
    assert fit(configuration).fits(configuration) == fits
    assert fit(configuration).lacking_bytes(configuration) == (
        MIN_CONTEXT_BYTES - left_bytes if fits == "no" else 0
    )


def test_more_host_memory_than_there_is_does_not_fit() -> None:
    configuration = way(pageable_bytes=10 * GIB, pinned_bytes=7 * GIB)
    assert fit(configuration).fits(configuration) == "yes"
    assert fit(configuration, host_bytes=17 * GIB).fits(configuration) == "yes"
    assert fit(configuration, host_bytes=16 * GIB).fits(configuration) == "no"


def test_what_fits_is_first_and_what_lacks_least_before_what_lacks_more() -> None:
    fast, slow = way(("fast",), bound_ms=1.0), way(("slow",), bound_ms=2.0)
    barely = way(("barely",), needed_bytes=24 * GIB - MIN_CONTEXT_BYTES, bound_ms=0.5)
    near, far = way(("near",), needed_bytes=25 * GIB), way(("far",), needed_bytes=30 * GIB)
    answer = fit(far, barely, slow, near, fast)
    assert [each.name for each in answer.in_order()] == ["fast", "slow", "barely", "near", "far"]
    assert answer.choice() == fast
    assert fit(far, barely).choice() == barely
    assert fit(far, near).choice() is None
    assert fit().choice() is None


def test_of_ways_as_fast_as_each_other_the_one_that_takes_least_of_the_host_is_first() -> None:
    pinned = way(("pinned",), bound_ms=100.0, pinned_bytes=40 * GIB)
    pageable = way(("pageable",), bound_ms=105.0)
    slower = way(("slower",), bound_ms=105.1, pageable_bytes=0)
    answer = fit(slower, pinned, pageable)
    assert answer.choice() == pageable
    assert answer.fastest() == pinned
    assert [each.name for each in answer.in_order()] == ["pageable", "pinned", "slower"]
    barely = way(("barely",), needed_bytes=24 * GIB - MIN_CONTEXT_BYTES, pageable_bytes=0)
    assert fit(barely, pinned).choice() == pinned
    smaller = way(("smaller",), bound_ms=105.0, needed_bytes=GIB)
    assert fit(pageable, smaller).choice() == smaller


def test_each_answer_is_the_best_of_what_fits_and_one_way_may_be_all() -> None:
    fast = way(("fast",), bound_ms=1.0, pageable_bytes=9 * GIB)
    small = way(("small",), bound_ms=9.0, needed_bytes=GIB, pageable_bytes=8 * GIB)
    plain = way(("plain",), bound_ms=5.0, needed_bytes=20 * GIB, pageable_bytes=0)
    large = way(("large",), needed_bytes=30 * GIB, bound_ms=0.1, pageable_bytes=0)
    answers = fit(plain, large, small, fast).answers()
    assert [(kinds, way.name) for kinds, way in answers] == [
        ((FASTEST,), "fast"),
        ((LEAST_CARD,), "small"),
        ((LEAST_HOST,), "plain"),
    ]
    assert fit(plain, large).answers() == [((FASTEST, LEAST_CARD, LEAST_HOST), plain)]
    assert fit(large).answers() == []


def test_what_changes_images_is_no_choice_where_what_does_not_is_as_fast() -> None:
    plain = way(("plain",), bound_ms=104.0, pageable_bytes=9 * GIB)
    modelled = way(("modelled",), bound_ms=100.0, is_modelled=True, pageable_bytes=0)
    coarse = way(("coarse",), bound_ms=100.0, pageable_bytes=0)
    ssim = {"coarse": {"storybook": 0.98}, "plain": {"storybook": 0.999}}
    assert fit(coarse, modelled, plain, ssim=ssim).choice() == plain
    slow = way(("plain",), bound_ms=106.0)
    assert fit(coarse, modelled, slow, ssim=ssim).choice() == modelled


def test_a_combination_loses_at_least_what_each_of_its_parts_does() -> None:
    ssim = {"a": {"storybook": 0.98, "storybook-dit": 0.99}, "b": {"storybook": 0.97}}
    both = way(("a", "b", "c"))
    assert fit(both, ssim=ssim).lowest_ssim(both) == 0.97
    assert fit(both).lowest_ssim(both) is None


def test_what_is_offloaded_is_the_choice_only_where_nothing_else_fits() -> None:
    plain = way(("plain",), bound_ms=3000.0)
    offloaded = way(("model_cpu_offload",), bound_ms=1000.0, pageable_bytes=0)
    answer = fit(offloaded, plain)
    assert answer.fastest() == answer.choice() == plain
    assert answer.in_order() == [plain, offloaded]
    large = replace(plain, needed_bytes=30 * GIB)
    assert fit(offloaded, large).choice() == offloaded
