"""The committed pipeline is small, safe to load, and draws."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from fixtures.settings import REPOSITORY
from fixtures.verdicts.image_checks import check_images
from fixtures.workloads import WORKLOADS
from fixtures.workloads.storybook import GUIDANCE_SCALE, IMAGE_PX, PIPELINE_FOLDER
from tests.support.running import own_environment

MAX_WEIGHTS_BYTES = 16 * 2**20


@pytest.fixture(scope="module")
def pipeline() -> Any:
    from diffusers import StableDiffusionPipeline

    pipeline = StableDiffusionPipeline.from_pretrained(PIPELINE_FOLDER)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def test_weights_are_safetensors_and_small() -> None:
    files = [file for file in PIPELINE_FOLDER.rglob("*") if file.is_file()]
    assert {file.suffix for file in files} == {".safetensors", ".json"}
    weights = [file for file in files if file.suffix == ".safetensors"]
    assert len(weights) == 3
    assert sum(file.stat().st_size for file in weights) <= MAX_WEIGHTS_BYTES


def test_configurations_name_no_path_of_a_machine() -> None:
    for file in PIPELINE_FOLDER.rglob("*.json"):
        if file.name != "tokenizer.json":
            values = json.loads(file.read_text(encoding="utf-8")).values()
            assert not [value for value in values if isinstance(value, str) and "/" in value]


def test_every_part_loads_as_fp32(pipeline: Any) -> None:
    for part in (pipeline.vae, pipeline.unet, pipeline.text_encoder):
        assert part.dtype == torch.float32


def test_the_same_seed_draws_the_same_image(pipeline: Any) -> None:
    def draw(prompt: str) -> Any:
        return pipeline(
            prompt,
            num_inference_steps=2,
            guidance_scale=GUIDANCE_SCALE,
            generator=torch.Generator().manual_seed(0),
            output_type="np",
        ).images[0]

    first, second, other = draw("a red house on mars"), draw("a red house on mars"), draw("a cat")
    assert first.shape == (IMAGE_PX, IMAGE_PX, 3)
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


LOADING = """
import sys
import torch
from fixtures.workloads import WORKLOADS
for weights in ("", "random"):
    WORKLOADS["storybook"].with_weights(weights).load(torch.float32)
print(*(name for name in sys.modules if name.startswith("fixtures.workloads.storybook.")))
"""


def test_loading_trained_and_random_weights_imports_no_classifier() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LOADING],
        cwd=REPOSITORY,
        env=own_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1].split() == ["fixtures.workloads.storybook.workload"]


def random_weights(dtype: torch.dtype) -> Any:
    return WORKLOADS["storybook"].with_weights("random").load(dtype)


def test_random_weights_are_the_same_every_time_and_not_the_trained_ones(pipeline: Any) -> None:
    workload = WORKLOADS["storybook"]
    first, second = (replace(workload, weights="random").load(torch.float32) for _ in range(2))
    for part in ("unet", "vae", "text_encoder"):
        drawn = getattr(first, part).state_dict()
        again = getattr(second, part).state_dict()
        trained = getattr(pipeline, part).state_dict()
        assert drawn.keys() == trained.keys()
        assert all(torch.equal(drawn[name], again[name]) for name in drawn)
        assert all(drawn[name].shape == trained[name].shape for name in drawn)
        assert not all(torch.equal(drawn[name], trained[name]) for name in drawn)


def test_random_weights_keep_what_is_no_weight(pipeline: Any) -> None:
    """The scheduler, the tokenizer and the scale of the latents are those of the folder."""
    drawn = random_weights(torch.float32)
    assert drawn.scheduler.config == pipeline.scheduler.config
    assert drawn.tokenizer("a red house").input_ids == pipeline.tokenizer("a red house").input_ids
    assert drawn.vae.config.scaling_factor == pipeline.vae.config.scaling_factor


def test_random_weights_draw_an_image_in_half_precision_too() -> None:
    workload = WORKLOADS["storybook"].with_weights("random")
    for dtype in (torch.float32, torch.bfloat16):
        check_images(workload.draw(workload.load(dtype), steps=2))


@pytest.mark.parametrize(
    ("name", "weights", "own"),
    [
        ("storybook", "", False),
        ("storybook", "random", True),
        ("storybook", "mine/", True),
        ("sd15", "", False),
        ("sd15", "random", False),
        ("sd15", "owner/name", True),
    ],
)
def test_own_weights_are_those_that_no_stored_baseline_was_measured_with(
    name: str, weights: str, own: bool
) -> None:
    assert WORKLOADS[name].with_weights(weights).has_own_weights is own
