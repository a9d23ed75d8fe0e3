"""The images of a baseline file: fp32's whole, the others as differences from those."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fixtures.records.baseline_store import as_differences, stored_images
from fixtures.records.baselines import Entry
from fixtures.records.images import Images, encoded
from tests.support.runs import entry

WIDE = settings(max_examples=40, deadline=None, derandomize=True, database=None)
NAMES = ("fp32", "fp16", "bf16")
BATCHES = arrays(np.uint8, (2, 5, 4, 3)).map(lambda stored: stored.astype(np.float32) / 255)
GENERATOR = np.random.default_rng(0)
ONE, OTHER, THIRD = GENERATOR.integers(0, 256, (3, 1, 8, 8, 3)).astype(np.float32) / 255


def whole(images: Images) -> Entry:
    """An entry that has just been recorded."""
    return entry(images=tuple(encoded(images, lossless=True)))


def same(entries: Mapping[str, Entry], drawn: Mapping[str, Images]) -> bool:
    """Whether the entries hold these images to the bit."""
    images_of = {name: stored_images(entries, name) for name in drawn}
    return all(
        images is not None and np.array_equal(images, drawn[name])
        for name, images in images_of.items()
    )


@WIDE
@given(
    drawn=st.dictionaries(st.sampled_from(NAMES), BATCHES, min_size=1),
    further=st.dictionaries(st.sampled_from(NAMES), BATCHES, min_size=1),
)
def test_every_image_is_what_was_drawn_last_whatever_is_recorded_in_what_order(
    drawn: dict[str, Images], further: dict[str, Images]
) -> None:
    """Where fp32's alone is recorded anew, too."""
    before = as_differences({name: whole(images) for name, images in drawn.items()}, {})
    assert same(before, drawn)
    new = {name: whole(images) for name, images in further.items()}
    after = as_differences({**before, **new}, before)
    assert same(after, {**drawn, **further})
    for name, stored in after.items():
        is_whole = name == "fp32" or "fp32" not in after
        assert bool(stored.images) == is_whole
        assert bool(stored.differences) != is_whole
        unchanged = name not in new and ("fp32" not in new)
        if unchanged:
            assert stored is before[name]


def test_the_others_are_written_anew_only_where_fp32_s_image_is_another_one() -> None:
    before = as_differences({"fp32": whole(ONE), "fp16": whole(OTHER)}, {})
    again = as_differences({**before, "fp32": whole(ONE)}, before)
    assert again["fp16"] is before["fp16"]
    moved = as_differences({**before, "fp32": whole(THIRD)}, before)
    assert moved["fp16"].differences != before["fp16"].differences
    assert same(moved, {"fp32": THIRD, "fp16": OTHER})
    figures = replace(moved["fp16"], differences=before["fp16"].differences)
    assert figures == before["fp16"], "nothing but the difference is written"


def test_images_are_whole_without_fp32_s_or_of_another_shape_and_what_has_none_has_none() -> None:
    entries = {"fp16": whole(OTHER), "bf16": entry(), "small": whole(OTHER[:, :4])}
    assert as_differences(entries, {}) == entries
    assert as_differences({**entries, "fp32": entry()}, {})["fp16"] is entries["fp16"]
    assert not entries["bf16"].has_images
    with_fp32 = as_differences({**entries, "fp32": whole(ONE)}, entries)
    assert all(with_fp32[name] is entries[name] for name in ("bf16", "small"))
    assert with_fp32["fp16"].has_images
    assert same(with_fp32, {"fp16": OTHER, "small": OTHER[:, :4]})
    assert stored_images(with_fp32, "bf16") is stored_images(with_fp32, "sdpa") is None
