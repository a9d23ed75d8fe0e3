"""Images in a record: small, whole, and nothing else is taken for one."""

from __future__ import annotations

import base64
import contextlib
import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from fixtures.records.codec import RecordError
from fixtures.records.images import (
    LARGEST_PX,
    MOST,
    PREFIX,
    STORED_SIDE_PX,
    Images,
    as_stored,
    decoded,
    encoded,
)
from fixtures.records.run import RESULTS
from tests.support.runs import run_record, scenario_record

WIDE = settings(max_examples=60, deadline=None, derandomize=True, database=None)
GREY = np.full((2, 32, 48, 3), 0.5)


def test_an_image_comes_back_nearly_as_it_was_and_small() -> None:
    uris = encoded(GREY)
    assert len(uris) == 2
    assert decoded(uris).shape == (2, 32, 48, 3)
    assert np.abs(decoded(uris) - 0.5).max() < 0.03
    assert len(uris[0]) < 1000


def test_values_that_are_no_number_or_out_of_range_are_drawn_all_the_same() -> None:
    odd = np.full((1, 32, 48, 3), 0.5)
    odd[0, :16], odd[0, 16:] = np.nan, 7.0
    drawn = decoded(encoded(odd))[0]
    assert drawn[:12].max() < 0.1
    assert drawn[20:].min() > 0.9


# Lossless


def batches() -> st.SearchStrategy[Images]:
    """A few small images of whole numbers of 255ths, whatever their content."""
    shapes = st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(1, 9), st.just(3))
    pixels = shapes.flatmap(lambda shape: arrays(np.uint8, shape))
    return pixels.map(lambda batch: batch.astype(np.float32) / 255)


@WIDE
@given(images=batches())
def test_a_lossless_image_comes_back_as_it_was(images: Images) -> None:
    assert np.array_equal(decoded(encoded(images, lossless=True)), images)


def test_a_lossless_image_is_rounded_to_eight_bits_and_no_further() -> None:
    values = np.random.default_rng(0).random((1, 32, 32, 3))
    lost = np.abs(decoded(encoded(values, lossless=True)) - values).max()
    assert 0.4 / 255 < lost <= 0.5 / 255 + 1e-6


# As a baseline stores them


def test_a_small_image_is_stored_as_it_is_and_of_many_frames_the_first() -> None:
    side = np.random.default_rng(0).random((MOST + 1, 8, STORED_SIDE_PX, 3))
    assert np.array_equal(as_stored(side), side[:MOST])


@pytest.mark.parametrize("factor", [2, 3])
def test_a_large_image_is_averaged_down_by_a_whole_factor(factor: int) -> None:
    height, width = 4 * factor + 1, STORED_SIDE_PX * factor
    large = np.random.default_rng(0).random((1, height, width, 3))
    stored = as_stored(large)
    assert stored.shape == (1, 4, STORED_SIDE_PX, 3), "the row that is left over is left out"
    assert stored[0, 1, 2] == pytest.approx(
        large[0, factor : 2 * factor, 2 * factor : 3 * factor].mean(axis=(0, 1))
    )
    assert as_stored(large[:, :, : width - 1]).shape[2] == STORED_SIDE_PX - 1
    assert np.array_equal(as_stored(stored), stored)
    one_more = np.zeros((1, STORED_SIDE_PX + 1, 8, 3))
    assert as_stored(one_more).shape == (1, STORED_SIDE_PX // 2, 4, 3)


# What is no image


def uri_of(width: int, height: int = 8, form: str = "WEBP") -> str:
    stored = io.BytesIO()
    Image.new("RGB", (width, height)).save(stored, format=form)
    return PREFIX + base64.b64encode(stored.getvalue()).decode()


def huge() -> str:
    """A few bytes that say of themselves that they are 16,384 x 16,384 pixels."""
    (uri,) = encoded(np.zeros((1, 8, 8, 3)), lossless=True)
    stored = bytearray(base64.b64decode(uri.removeprefix(PREFIX)))
    size = stored.index(b"VP8L") + 9
    stored[size : size + 4] = b"\xff\xff\xff\x0f"
    return PREFIX + base64.b64encode(stored).decode()


@pytest.mark.parametrize(
    ("uris", "words"),
    [
        ([], "no image is stored"),
        ([PREFIX + "A"], "cannot be read"),
        ([uri_of(8)[:-16]], "cannot be read"),
        ([uri_of(8, form="PNG")], "cannot be read"),
        ([uri_of(8, LARGEST_PX + 1)], "is larger than 4096 pixels"),
        ([huge()], "cannot be read"),
        ([uri_of(8), uri_of(9)], "differ in size"),
    ],
    ids=["none", "not base64", "truncated", "another format", "high", "huge", "two sizes"],
)
def test_what_is_no_image_is_refused_in_a_sentence(uris: list[str], words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        decoded(uris)
    assert str(caught.value).isprintable()


@WIDE
@given(content=st.binary(max_size=200), start=st.integers(0, 40))
def test_whatever_is_stored_is_an_image_or_refused(content: bytes, start: int) -> None:
    sound = base64.b64decode(uri_of(8).removeprefix(PREFIX))
    uri = PREFIX + base64.b64encode(sound[:start] + content).decode()
    with contextlib.suppress(ValueError):
        assert decoded([uri]).ndim == 4


@pytest.mark.parametrize(
    "uri",
    [
        "https://example.org/image.webp",
        "data:image/svg+xml;base64,AAAA",
        'data:image/webp;base64,AAAA" onerror="alert(1)',
        "data:image/webp;base64,AAAA\n",
        "",
    ],
)
@pytest.mark.parametrize("field", ["images", "stored_images", "flip_maps"])
def test_anything_else_is_refused(field: str, uri: str) -> None:
    maps = field == "flip_maps"
    figures: dict[str, Any] = {field: {"whose": [uri]} if maps else [uri]}
    text = RESULTS.dump(run_record(scenario_record("fp16", **figures)))
    where = r"\.whose" if maps else ""
    with pytest.raises(RecordError, match=rf"at scenarios\.storybook-fp16\.{field}{where}\.0: "):
        RESULTS.load(text, "results.json")
