"""A contact sheet: where images and captions stand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fixtures.records.contact_sheet import CAPTION_PX, GAP_PX, write_contact_sheet

SIDE = 40


def flat(*values: float) -> np.ndarray:
    return np.stack([np.full((SIDE, SIDE, 3), value) for value in values])


def test_cells_stand_in_rows_and_images_side_by_side(tmp_path: Path) -> None:
    cells = [("", flat(0.0, 0.2)), ("", flat(0.4, 0.6)), ("", flat(0.8, -1.0))]
    write_contact_sheet(cells, 2, tmp_path / "sheet.png")
    pixels = np.asarray(Image.open(tmp_path / "sheet.png"))
    cell = 2 * SIDE + GAP_PX // 2 + 2 * GAP_PX
    assert pixels.shape == (2 * (SIDE + CAPTION_PX + GAP_PX), 2 * cell, 3)
    found = [
        pixels[top : top + SIDE, left : left + SIDE]
        for top in (CAPTION_PX, CAPTION_PX + SIDE + CAPTION_PX + GAP_PX)
        for left in (0, SIDE + GAP_PX // 2, cell, cell + SIDE + GAP_PX // 2)
    ]
    assert [(one.min(), one.max()) for one in found[:6]] == [
        (value, value) for value in (0, 51, 102, 153, 204, 0)
    ]
    assert (pixels == 255).sum() == pixels.size - 6 * SIDE * SIDE * 3


@pytest.mark.parametrize(("caption", "lines"), [("short", 1), ("one two three four five six", 2)])
def test_a_caption_takes_two_lines_at_most(tmp_path: Path, caption: str, lines: int) -> None:
    write_contact_sheet([(caption, flat(1.0, 1.0))], 1, tmp_path / "sheet.png")
    written = np.asarray(Image.open(tmp_path / "sheet.png"))[:CAPTION_PX].min(axis=(1, 2)) < 128
    assert written[: CAPTION_PX // 2].any()
    assert written[CAPTION_PX // 2 + 2 :].any() == (lines == 2)
    assert not np.asarray(Image.open(tmp_path / "sheet.png"))[CAPTION_PX:].min() < 255
