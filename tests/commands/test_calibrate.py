"""Calibration: what was drawn in several environments becomes a table, and the stored variation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from fixtures.commands import calibrate
from fixtures.commands.calibrate import PLAIN, main, suggested_min_ssim
from fixtures.metrics import image_limits

PICTURE = np.random.default_rng(0).random((1, 32, 32, 3)).astype(np.float32) * 0.9


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["storybook", "--perf-device", "abacus"], "--perf-device 'abacus' is unknown"),
        (["sd15", "--perf-device", "simulated"], "sd15-fp32 draws nothing on simulated"),
        (["storybook", "--perf-device", "cpu", "-k", "tf32"], "storybook-tf32 draws nothing on"),
        (["storybook", "-k", "magic", "--perf-device", "cpu"], "Technique 'magic' is unknown"),
        (["nothing", "--perf-device", "cpu"], "Workload 'nothing' is unknown"),
    ],
)
def test_what_cannot_be_calibrated_is_said_in_a_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"calibrate: {sentence}")
    assert said.count("\n") == 1


def test_min_ssim_follows_from_the_largest_harmless_deviation() -> None:
    lowest = (1.0, 0.999, 0.995, 0.945)
    assert [suggested_min_ssim(value) for value in lowest] == [0.99, 0.99, 0.98, 0.83]


def test_limits_follow_from_what_environments_drew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def draw_everywhere(arguments: Sequence[str], folder: Path) -> None:
        for name in calibrate.ENVIRONMENTS:
            elsewhere = 0.0 if name == PLAIN else 0.01
            drawn = {"fp32": 0.0, "sdpa": elsewhere, "fp16": -0.02}
            (folder / name).mkdir()
            for technique, added in drawn.items():
                if name == PLAIN or technique != "fp16":
                    images = np.clip(np.stack([PICTURE, PICTURE]) + added, 0, 1)
                    np.save(folder / name / f"{technique}.npy", images.astype(np.float32))

    stored = tmp_path / "harmless.json"
    stored.write_text(image_limits.MEASURED.read_text())
    before = json.loads(stored.read_text())
    monkeypatch.setattr(calibrate, "MEASURED", stored)
    monkeypatch.setattr(calibrate, "draw_everywhere", draw_everywhere)
    image_limits.measured_variation.cache_clear()
    words = ["storybook", "--perf-device", "cpu", "-k", "sdpa", "-k", "fp16"]
    assert main(words) == 0
    assert json.loads(stored.read_text()) == before, "which needs --write"
    assert main([*words, "--write"]) == 0
    image_limits.measured_variation.cache_clear()
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows[2:5]] == ["| fp32", "| sdpa", "| fp16"]
    assert rows[2][1:3] == ["1.0000", "0.99"]
    after = json.loads(stored.read_text())
    variation = after["cpu"]["storybook"]
    assert variation["fp32"]["stored"]["largest"] == 0
    # From fp32's of the same environment, and from its own of the plain one.
    assert variation["sdpa"]["stored"]["largest"] == pytest.approx(0.01, rel=1e-3)
    assert variation["sdpa"]["fp32"]["channel"] == pytest.approx(0.01, rel=0.1)
    # Other processors round half precision otherwise: as far as from fp32.
    assert variation["fp16"]["stored"] == variation["fp16"]["fp32"]
    assert variation["fp16"]["fp32"]["largest"] == pytest.approx(0.02, rel=1e-3)
    assert after["cpu"]["storybook-dit"] == before["cpu"]["storybook-dit"]


@pytest.mark.long
def test_one_technique_is_drawn_in_a_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(calibrate, "ENVIRONMENTS", {PLAIN: {}})  # each takes a minute
    words = ["storybook", "--perf-device", "cpu", "-k", "sdpa", "--images", "1"]
    assert main(words) == 0
    assert "| sdpa | 1.0000 | 0.99 |" in capfd.readouterr().out
