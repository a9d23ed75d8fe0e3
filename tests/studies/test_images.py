"""The study of images: damages do damage, mistakes end, and tables count what is seen."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fixtures.devices import open_device
from fixtures.records.baseline_store import BaselineStore
from fixtures.records.likeness import FP32, STORED
from fixtures.scenarios import find_scenario
from fixtures.studies.images import __main__ as command
from fixtures.studies.images.damages import DAMAGES, LAST_DAMAGES, damaged
from fixtures.studies.images.limits import text, variations
from fixtures.studies.images.mistakes import LAST_MISTAKES, MISTAKES, wrong_calls
from fixtures.studies.images.power import REFUSED, Tried, is_visible, tried
from fixtures.studies.images.tables import missed, power_table, roc_table
from fixtures.verdicts import image_limits
from fixtures.verdicts.image_limits import Variation

REPOSITORY = Path(__file__).parents[2]
FP32_RUN, SLICED = (find_scenario("storybook", name) for name in ("fp32", "attention_slicing"))


@pytest.fixture(scope="module")
def picture() -> Any:
    """The stored fp32 picture of storybook, shape (1, height, width, 3)."""
    images = BaselineStore(REPOSITORY / "baselines").images("cpu", "storybook", "fp32")
    assert images is not None
    return images


def test_every_damage_grows_with_its_strength(picture: Any) -> None:
    image = picture[0].astype(np.float64)
    assert not {*DAMAGES} & {*LAST_DAMAGES}
    for name, (damage, strengths) in {**DAMAGES, **LAST_DAMAGES}.items():
        apart = [float(np.abs(damaged(image, damage, one) - image).mean()) for one in strengths]
        assert 0 < apart[0] < apart[1] < apart[2], name
        assert is_visible(damaged(image, damage, strengths[2]), image), name


def test_what_an_eye_sees_is_seen_and_rounding_is_not(picture: Any) -> None:
    image = picture[0].astype(np.float64)
    assert not is_visible(np.clip(image + 1 / 255, 0, 1), image)
    block = image.copy()
    block[60:63, 60:63] = 1 - block[60:63, 60:63]
    assert is_visible(block, image)


@pytest.mark.long
@pytest.mark.parametrize("workload", ["storybook", "storybook-dit"])
def test_a_mistake_changes_the_picture_and_ends(workload: str) -> None:
    device = open_device("cpu")
    scenario = find_scenario(workload, "fp32")
    with scenario.running(device) as pipeline:
        right = scenario.workload.draw(pipeline, steps=2)
        for name, (mistake, strengths) in {**MISTAKES, **LAST_MISTAKES}.items():
            with mistake(pipeline, strengths[2]):
                wrong = scenario.workload.draw(pipeline, steps=2)
            assert np.abs(wrong - right).max() > 1e-3, name
        assert (scenario.workload.draw(pipeline, steps=2) == right).all()


def test_wrong_calls_are_of_the_batch_where_there_is_one() -> None:
    call = find_scenario("storybook-batch8", "fp32").workload.call
    *_, for_all = wrong_calls(call)["a prompt of a batch"]
    assert set(replace(call, **for_all).prompts) == {call.prompt}
    one, *_ = wrong_calls(call)["a prompt of a batch"]
    assert [a == b for a, b in zip(replace(call, **one).prompts, call.prompts, strict=True)] == [
        *[True] * 7, False,
    ]  # fmt: skip
    assert "a prompt of a batch" not in wrong_calls(FP32_RUN.workload.call)


def test_limits_follow_from_what_environments_drew(tmp_path: Path, picture: Any) -> None:
    def keep(environment: str, scenario: Any, images: Any) -> None:
        folder = tmp_path / environment
        folder.mkdir(exist_ok=True)
        np.save(folder / f"{scenario.id}.npy", np.stack([images, images]).astype(np.float32))

    half = find_scenario("storybook", "fp16")
    dark = np.clip(picture - 0.02, 0, 1)
    keep("plain", FP32_RUN, picture)
    keep("plain", SLICED, picture)
    keep("plain", half, dark)
    keep("another", FP32_RUN, picture)
    keep("another", SLICED, np.clip(picture + 0.01, 0, 1))
    found = {s.technique.id: one for s, _, one in variations(tmp_path, [FP32_RUN, SLICED, half])}
    assert found["fp32"].keys() == {"stored"}
    assert found["fp32"]["stored"].largest == 0
    # From fp32's of the same environment, and from its own of the plain one.
    assert found["attention_slicing"]["stored"].largest == pytest.approx(0.01, rel=1e-3)
    assert found["attention_slicing"]["fp32"].channel == pytest.approx(0.01, rel=0.1)
    # Other processors round half precision otherwise: as far as from fp32.
    assert found["fp16"]["stored"] == found["fp16"]["fp32"]
    written = json.loads(text({"cpu": {"storybook": found}}))
    assert written["cpu"]["storybook"]["fp16"]["fp32"]["largest"] == pytest.approx(0.02, rel=1e-3)


def test_tried_names_every_measure_that_is_beyond_its_limit(
    picture: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    none = Variation(0.0, 0.0, 0.0, 0.0)
    measured = {"cpu": {"storybook": {"attention_slicing": {"fp32": none, "stored": none}}}}
    monkeypatch.setattr(image_limits, "measured_variation", lambda: measured)
    device = open_device("cpu")
    same = tried(SLICED, device, ("none", 0), picture, picture, picture)
    assert (same.is_visible, same.seen_by) == (False, ())
    bright = np.clip(picture * 1.1, 0, 1)
    one = tried(SLICED, device, ("brightness", 1), bright, picture, picture)
    assert one.is_visible
    assert {f"channel from {FP32}", f"largest from {STORED}"} <= set(one.seen_by)
    assert "SSIM" not in one.seen_by, "which is why the others are there"
    black = tried(SLICED, device, ("black", 2), picture * 0, picture, picture)
    assert black.seen_by == (REFUSED,)


def test_tables_count_what_is_visible() -> None:
    def one(visible: bool, *seen: str, ssim: float = 1.0) -> Tried:
        return Tried("w", "t", "hue", 0, visible, seen, {f"ssim from {FP32}": ssim})

    members = [one(True, "SSIM", ssim=0.5), one(True, f"largest from {STORED}"), one(True)]
    table = power_table([*members, one(False, "SSIM")], lambda each: each.damage, "damage")
    assert "| hue | 3, 4 | 33.3% | 33.3% | 33.3% | 66.7% |" in table
    assert missed(members) == ["w-t: hue, strength 1"]
    roc = roc_table({f"ssim from {FP32}": [0.9, 1.0, 1.0]}, members)
    assert f"| ssim from {FP32} | 0.5556 | 33.3% | 33.3% | 33.3% |" in roc


def test_what_is_missing_is_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert command.main(["power", str(tmp_path), "storybook", "--tables"]) == 2
    assert "draw first" in capsys.readouterr().err
    assert command.main(["limits", str(tmp_path), "nothing"]) == 2
    assert "nothing" in capsys.readouterr().err
