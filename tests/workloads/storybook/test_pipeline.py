"""The committed pipeline is small, safe to load, and draws."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from fixtures.workloads.storybook import GUIDANCE_SCALE, PICTURE_PX, PIPELINE_FOLDER

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
    import torch

    for part in (pipeline.vae, pipeline.unet, pipeline.text_encoder):
        assert part.dtype == torch.float32


def test_the_same_seed_draws_the_same_picture(pipeline: Any) -> None:
    import torch

    def draw(prompt: str) -> Any:
        return pipeline(
            prompt,
            num_inference_steps=2,
            guidance_scale=GUIDANCE_SCALE,
            generator=torch.Generator().manual_seed(0),
            output_type="np",
        ).images[0]

    first, second, other = draw("a red house on mars"), draw("a red house on mars"), draw("a cat")
    assert first.shape == (PICTURE_PX, PICTURE_PX, 3)
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_the_tokenizer_of_the_folder_is_the_worlds(pipeline: Any) -> None:
    from fixtures.workloads.storybook.tokens import world_tokenizer, world_words

    text = " ".join(world_words())
    assert pipeline.tokenizer(text).input_ids == world_tokenizer()(text).input_ids


def test_importing_the_package_imports_no_torch() -> None:
    script = (
        "import importlib.util, sys\n"
        "spec = importlib.util.spec_from_file_location('storybook', sys.argv[1])\n"
        "spec.loader.exec_module(importlib.util.module_from_spec(spec))\n"
        "sys.exit('torch' in sys.modules)\n"
    )
    package = PIPELINE_FOLDER.parent / "__init__.py"
    assert subprocess.run([sys.executable, "-c", script, str(package)], check=False).returncode == 0
