"""Calibration: its options, its table, and the sentence where it cannot start."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fixtures.devices import Device
from fixtures.records.contact_sheet import CAPTION_PX
from fixtures.records.images import Images
from fixtures.scenarios import Scenario
from fixtures.studies import calibration
from fixtures.studies.calibration import Drawn, Variation, main
from tests.support.fake_device import FakeDevice


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["storybook", "--perf-device", "abacus"], "--perf-device 'abacus' is unknown"),
        (["sd15", "--perf-device", "simulated"], "--perf-device simulated draws nothing"),
        (["storybook", "--technique", "magic"], "Technique 'magic' is unknown"),
        (["sd15", "--perf-device", "cpu", "--classify"], "--classify: nothing tells what an image"),
        (["nothing", "--perf-device", "cpu"], "Workload 'nothing' is unknown"),
    ],
)
def test_what_cannot_be_calibrated_is_said_in_a_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"calibration: {sentence}")
    assert said.count("\n") == 1


def test_the_table_has_a_row_for_each_technique_and_each_control(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plain: Images = np.random.default_rng(0).random((1, 32, 32, 3))

    def draw_all(scenario: Scenario, device: Device, calls: Sequence[Variation]) -> Drawn:
        tiled = scenario.technique.id == "vae_tiling"
        images = plain * 0.5 if scenario.technique.id == "bf16" else plain
        return Drawn([images] * len(calls), (8, 16) if tiled else ())

    monkeypatch.setattr(calibration, "open_device", lambda name: FakeDevice(name=name))
    monkeypatch.setattr(calibration, "draw_all", draw_all)
    monkeypatch.setattr(calibration, "highest_controls", lambda *_: {"black": 0.01})
    assert main(["storybook-256", "--perf-device", "cpu", "--images", "2"]) == 0
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in capsys.readouterr().out.splitlines()
        if line
    ]
    assert rows[0][1] == "lowest SSIM of 2"
    by_name = {row[0]: row[1:] for row in rows}
    assert by_name["fp32"] == ["1.0000", "0.99", by_name["fp32"][2], "-"]
    assert by_name["vae_tiling"][3] != "-"
    assert by_name["black"] == ["0.0100"]

    chosen = ["--technique", "sdpa", "--technique", "bf16"]
    sheet = tmp_path / "new" / "sheet.png"
    assert main(["storybook", "--perf-device", "cpu", *chosen, "--sheet", str(sheet)]) == 0
    rows_of_techniques = capsys.readouterr().out.split("\n\n")[0].splitlines()[2:]
    assert [row.split()[1] for row in rows_of_techniques] == ["sdpa", "bf16"]
    pixels = np.asarray(Image.open(sheet))
    across = pixels.shape[1] // calibration.SHEET_COLUMNS
    fp32, bf16, *others = (
        pixels[CAPTION_PX : CAPTION_PX + 32, column * across : column * across + 32]
        for column in range(calibration.SHEET_COLUMNS)
    )
    np.testing.assert_array_equal(fp32, np.round(plain[0] * 255))
    np.testing.assert_array_equal(bf16, np.round(plain[0] * 0.5 * 255))
    assert {other.min() for other in others} == {255}
    assert main(["storybook", "--perf-device", "cpu", *chosen, "--sheet", str(tmp_path)]) == 2
    assert f"calibration: --sheet {tmp_path} cannot be written: " in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"new"}


def test_the_lowest_of_all_images_counts() -> None:
    one: Images = np.random.default_rng(1).random((1, 32, 32, 3))
    other: Images = np.random.default_rng(2).random((1, 32, 32, 3))
    wanted = Drawn([one, one], ())
    assert Drawn([one, one], ()).lowest_ssim(wanted) == 1.0
    assert Drawn([one, other], ()).lowest_ssim(wanted) < 0.5
    assert Drawn([one], ()).highest_seam_contrast(Drawn([one], ())) is None
