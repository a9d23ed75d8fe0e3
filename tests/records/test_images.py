"""Pictures in the report: small, whole, and nothing else is taken for one."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fixtures.report.__main__ import main
from fixtures.report.pictures import AMPLIFIED, MOST, checked, differences, encoded
from fixtures.report.results import from_json, to_json
from tests.test_report_page import some_run


def decoded(uri: str) -> np.ndarray:
    stored = io.BytesIO(base64.b64decode(uri.partition(",")[2]))
    return np.asarray(Image.open(stored).convert("RGB")) / 255


GREY = np.full((2, 32, 48, 3), 0.5)


def test_a_picture_comes_back_nearly_as_it_was_and_small() -> None:
    uris = encoded(GREY)
    assert len(uris) == 2
    assert decoded(uris[0]).shape == (32, 48, 3)
    assert np.abs(decoded(uris[0]) - 0.5).max() < 0.03
    assert len(uris[0]) < 1000


def test_what_is_no_number_or_out_of_range_is_still_a_picture() -> None:
    odd = GREY.copy()
    odd[0, 0], odd[0, 1] = np.nan, 7.0
    assert decoded(encoded(odd)[0]).shape == (32, 48, 3)


def test_of_many_frames_the_first_are_kept() -> None:
    assert len(encoded(np.zeros((49, 8, 8, 3)))) == MOST


def test_a_difference_is_amplified_and_of_equal_pictures_black() -> None:
    assert decoded(differences(GREY, GREY)[0]).max() < 0.02
    seen = decoded(differences(GREY + 0.1, GREY)[0])
    assert np.abs(seen - 0.1 * AMPLIFIED).max() < 0.03
    assert differences(GREY, GREY[:1]) == []


@pytest.mark.parametrize(
    "uri",
    [
        "https://example.org/picture.webp",
        "javascript:alert(1)",
        "data:text/html;base64,AAAA",
        'data:image/webp;base64,AAAA" onerror="alert(1)',
        "data:image/webp;base64,AAAA\n",
        7,
        None,
    ],
)
def test_anything_else_is_refused(
    uri: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match="is no picture"):
        checked([uri])
    stored = to_json(some_run())
    stored["scenarios"][0]["pictures"] = [uri]
    path = tmp_path / "results.json"
    path.write_text(json.dumps(stored))
    assert main([str(path), "--output", str(tmp_path / "out")]) == 2
    assert "is no picture" in capsys.readouterr().err


def test_pictures_survive_the_way_through_a_file() -> None:
    run = some_run()
    record = run.scenarios["storybook-fp16"]
    record.pictures, record.differences = encoded(GREY), differences(GREY, GREY)
    again = from_json(json.loads(json.dumps(to_json(run)))).scenarios["storybook-fp16"]
    assert (again.pictures, again.differences) == (record.pictures, record.differences)
