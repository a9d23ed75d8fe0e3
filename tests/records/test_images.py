"""Images in a record: small, whole, and nothing else is taken for one."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fixtures.records.codec import RecordError
from fixtures.records.images import AMPLIFIED, MOST, Images, differences, encoded
from fixtures.records.run import RESULTS
from tests.support.runs import run_record, scenario_record

GREY = np.full((2, 32, 48, 3), 0.5)


def decoded(uri: str) -> Images:
    stored = io.BytesIO(base64.b64decode(uri.partition(",")[2]))
    return np.asarray(Image.open(stored).convert("RGB")) / 255


def test_an_image_comes_back_nearly_as_it_was_and_small() -> None:
    uris = encoded(GREY)
    assert len(uris) == 2
    assert decoded(uris[0]).shape == (32, 48, 3)
    assert np.abs(decoded(uris[0]) - 0.5).max() < 0.03
    assert len(uris[0]) < 1000


def test_values_that_are_no_number_or_out_of_range_are_drawn_all_the_same() -> None:
    odd = np.full((1, 32, 48, 3), 0.5)
    odd[0, :16], odd[0, 16:] = np.nan, 7.0
    drawn = decoded(encoded(odd)[0])
    assert drawn[:12].max() < 0.1
    assert drawn[20:].min() > 0.9


def test_of_many_frames_the_first_are_kept() -> None:
    assert len(encoded(np.zeros((49, 8, 8, 3)))) == MOST


def test_a_difference_is_amplified_and_of_equal_images_black() -> None:
    assert decoded(differences(GREY, GREY)[0]).max() < 0.02
    seen = decoded(differences(GREY + 0.1, GREY)[0])
    assert np.abs(seen - 0.1 * AMPLIFIED).max() < 0.03
    assert differences(GREY, GREY[:1]) == []


@pytest.mark.parametrize(
    "uri",
    [
        "https://example.org/image.webp",
        "javascript:alert(1)",
        "data:text/html;base64,AAAA",
        "data:image/svg+xml;base64,AAAA",
        'data:image/webp;base64,AAAA" onerror="alert(1)',
        "data:image/webp;base64,AAAA\n",
        "data:image/webp;base64,",
        "",
    ],
)
@pytest.mark.parametrize("field", ["images", "differences"])
def test_anything_else_is_refused(field: str, uri: str) -> None:
    figures: dict[str, Any] = {field: [uri]}
    text = RESULTS.dump(run_record(scenario_record("fp16", **figures)))
    with pytest.raises(RecordError, match=rf"at scenarios\.storybook-fp16\.{field}\.0: "):
        RESULTS.load(text, "results.json")


def test_images_survive_the_way_through_a_file() -> None:
    record = scenario_record("fp16", images=encoded(GREY), differences=differences(GREY, GREY))
    again = RESULTS.load(RESULTS.dump(run_record(record)), "here").scenarios["storybook-fp16"]
    assert (again.images, again.differences) == (record.images, record.differences)
    assert again.images
