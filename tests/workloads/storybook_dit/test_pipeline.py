"""The committed Flux is small, safe to load, and draws what is asked."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

from fixtures.devices.kinds import KINDS
from fixtures.scenarios import scenarios
from fixtures.settings import REPOSITORY
from fixtures.verdicts.image_checks import check_images
from fixtures.verdicts.likeness import ssim
from fixtures.workloads import WORKLOADS, default_workloads
from fixtures.workloads.byte_tokenizer import T5_SPECIAL
from fixtures.workloads.storybook import IMAGE_PX
from fixtures.workloads.storybook.workload import FURTHER
from fixtures.workloads.storybook_dit import PIPELINE_FOLDER, SHIFT_FACTOR, TOKENS
from tests.support.negative_controls import wrong_prediction_type

MAX_WEIGHTS_BYTES = 16_000_000
WORKLOAD = WORKLOADS["storybook-dit"]
MODELS = ("transformer", "vae", "text_encoder", "text_encoder_2")


@pytest.fixture(scope="module")
def pipeline() -> Any:
    return WORKLOAD.load(torch.float32)


# What is stored


def test_weights_are_safetensors_and_small() -> None:
    files = [file for file in PIPELINE_FOLDER.rglob("*") if file.is_file()]
    assert {file.suffix for file in files} == {".safetensors", ".json"}
    weights = [file for file in files if file.suffix == ".safetensors"]
    assert len(weights) == 2
    assert sum(file.stat().st_size for file in files) <= MAX_WEIGHTS_BYTES


def test_configurations_name_no_path_of_a_machine() -> None:
    for file in PIPELINE_FOLDER.rglob("*.json"):
        if file.name != "tokenizer.json":
            values = json.loads(file.read_text(encoding="utf-8")).values()
            words = {value for value in values if isinstance(value, str)} - {*T5_SPECIAL}
            assert not [word for word in words if "/" in word]


def test_the_vae_and_the_clip_encoder_are_storybook_s(pipeline: Any) -> None:
    other = WORKLOADS["storybook"].load(torch.float32)
    for part in ("vae", "text_encoder"):
        mine, theirs = (getattr(one, part).state_dict() for one in (pipeline, other))
        assert mine.keys() == theirs.keys()
        assert all(torch.equal(mine[name], theirs[name]) for name in mine)
    assert pipeline.vae.config.shift_factor == SHIFT_FACTOR
    assert other.vae.config.shift_factor is None


def test_the_licence_is_the_repository_s() -> None:
    card = (PIPELINE_FOLDER.parent / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "Apache-2.0" in card
    assert "Apache License" in (REPOSITORY / "LICENSE").read_text(encoding="utf-8")


# Loading


def test_every_part_loads_as_fp32_in_a_plain_pipeline(pipeline: Any) -> None:
    assert {getattr(pipeline, part).dtype for part in MODELS} == {torch.float32}
    assert type(pipeline.scheduler).__name__ == "FlowMatchEulerDiscreteScheduler"
    assert not pipeline.transformer.config.guidance_embeds


def test_random_weights_keep_what_is_no_weight(pipeline: Any) -> None:
    drawn = WORKLOAD.with_weights("random").load(torch.float32)
    assert drawn.scheduler.config == pipeline.scheduler.config
    assert drawn.vae.config.shift_factor == pipeline.vae.config.shift_factor
    for name in ("tokenizer", "tokenizer_2"):
        mine, theirs = getattr(drawn, name), getattr(pipeline, name)
        assert mine("a red house").input_ids == theirs("a red house").input_ids
    trained, random = pipeline.transformer.state_dict(), drawn.transformer.state_dict()
    assert {name: tensor.shape for name, tensor in trained.items()} == {
        name: tensor.shape for name, tensor in random.items()
    }
    assert not torch.equal(trained["proj_out.weight"], random["proj_out.weight"])
    check_images(WORKLOAD.with_weights("random").draw(drawn, steps=2))


# Drawing


def test_the_same_seed_draws_the_same_image_and_another_prompt_another(pipeline: Any) -> None:
    first, again = (WORKLOAD.draw(pipeline, steps=2) for _ in range(2))
    assert first.shape == (1, IMAGE_PX, IMAGE_PX, 3)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, WORKLOAD.draw(pipeline, steps=2, seed=1))
    assert not np.array_equal(first, WORKLOAD.draw(pipeline, steps=2, prompt="a cat"))


def test_each_step_asks_the_transformer_with_the_prompt_and_without(pipeline: Any) -> None:
    asked: list[Any] = []

    def note(module: Any, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        asked.append(named["encoder_hidden_states"])

    handle = pipeline.transformer.register_forward_pre_hook(note, with_kwargs=True)
    try:
        WORKLOAD.draw(pipeline, steps=2)
    finally:
        handle.remove()
    assert len(asked) == 4
    assert asked[0].shape == (1, TOKENS, pipeline.transformer.config.joint_attention_dim)
    assert torch.equal(asked[0], asked[2])
    assert torch.equal(asked[1], asked[3])
    assert not torch.equal(asked[0], asked[1])


@pytest.mark.parametrize("prompt", FURTHER)
def test_it_draws_the_subject_and_the_place_that_are_asked_for(pipeline: Any, prompt: str) -> None:
    [shown] = WORKLOAD.classes(WORKLOAD.draw(pipeline, prompt=prompt))
    asked, _ = FURTHER[prompt]
    assert {name: shown[name] for name in ("subject", "place")}.items() <= asked.items()


# In the suite


def test_it_runs_by_name_alone_until_it_has_baselines() -> None:
    assert all("storybook-dit" not in names for names in map(default_workloads, KINDS))
    ids = {scenario.id for scenario in scenarios(["storybook-dit"])}
    assert {"storybook-dit-fp32", "storybook-dit-fp16", "storybook-dit-torch_compile"} <= ids
    assert WORKLOAD.is_embedded
    assert WORKLOAD.frozen is None


def test_a_flow_taken_for_the_image_draws_another_image(pipeline: Any) -> None:
    right = WORKLOAD.draw(pipeline, steps=4)
    with wrong_prediction_type(pipeline):
        wrong = WORKLOAD.draw(pipeline, steps=4)
    assert ssim(wrong, right) < 0.9
    assert np.array_equal(WORKLOAD.draw(pipeline, steps=4), right)
