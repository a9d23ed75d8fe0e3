"""What images show: the stored classifier sees it, and sees a change that SSIM lets pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fixtures.devices.cpu import CpuDevice
from fixtures.metrics.images import judge_classes
from fixtures.records.images import Images
from fixtures.records.outcome import Outcome
from fixtures.techniques import CATALOGUE
from fixtures.verdicts.likeness import ssim
from fixtures.workloads import WORKLOADS
from fixtures.workloads.storybook import CLASSIFIER_FILE
from fixtures.workloads.storybook.classifier import ASKED_BY_THE_GOAL, stored_classifier
from tests.metrics.cases import case

MAX_BYTES = 2 * 2**20
EMBEDDED = ("storybook", "storybook-batch8", "storybook-dit")


def drawn(name: str, **changes: Any) -> Images:
    """What fp32 draws on a CPU."""
    workload = WORKLOADS[name]
    with CATALOGUE["fp32"].applied(workload, CpuDevice()) as pipeline:
        return workload.draw(pipeline, **changes)


def test_its_file_is_small_and_knows_what_is_asked() -> None:
    assert CLASSIFIER_FILE.stat().st_size < MAX_BYTES
    assert set(ASKED_BY_THE_GOAL) <= set(stored_classifier().questions)


@pytest.mark.parametrize("name", EMBEDDED)
def test_an_embedded_workload_s_images_show_what_its_prompt_says(name: str) -> None:
    workload = WORKLOADS[name]
    shown, asked = workload.classes(drawn(name)), workload.asked
    assert len(shown) == len(asked) == workload.call.batch
    for number, (one, wanted) in enumerate(zip(shown, asked, strict=True)):
        assert {"subject", "place"} <= wanted.keys()
        assert wanted.items() <= one.items(), workload.call.prompts[number]


def test_a_batch_s_prompts_ask_for_something_else_each() -> None:
    """Else one image in the place of another would be no fault."""
    asked = [tuple(one.items()) for one in WORKLOADS["storybook-batch8"].asked]
    assert len({*asked}) == len(asked) == 8


def test_other_weights_are_not_asked() -> None:
    images = np.zeros((1, 128, 128, 3))
    assert WORKLOADS["storybook"].classes(images)
    assert WORKLOADS["storybook"].with_weights("random").classes(images) == ()
    assert WORKLOADS["sd15"].classes(images) == ()


def test_images_of_another_size_are_not_asked_about() -> None:
    twice = np.zeros((1, 256, 256, 3))
    assert not WORKLOADS["storybook-256"].classes(twice)
    assert not WORKLOADS["storybook"].classes(twice[:, :128])
    assert WORKLOADS["storybook-256"].classes(twice[:, :128, :128])


def test_an_astronaut_painted_in_another_colour_is_alike_and_is_found() -> None:
    """Several techniques must reach 0.90 there: SSIM alone would let it pass."""
    wanted = drawn("storybook-dit")
    light = wanted.min(axis=-1, keepdims=True) > 0.65
    painted = np.where(light, wanted * np.array([1.0, 0.25, 0.2]), wanted)
    workload = WORKLOADS["storybook-dit"]
    verdict = judge_classes(case(), workload.classes(painted), workload.classes(wanted))
    assert ssim(painted, wanted) > CATALOGUE["first_block_cache"].min_ssim_on("storybook-dit")
    assert verdict.outcome is Outcome.REGRESSION
    assert "main colour red where fp32's shows white" in verdict.sentence
