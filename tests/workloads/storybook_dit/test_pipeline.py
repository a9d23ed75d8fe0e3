"""The committed Flux is small, safe to load, that of the training code, and draws what is asked."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from fixtures.devices.kinds import KINDS
from fixtures.measuring.negative_controls import wrong_prediction_type
from fixtures.scenarios import scenarios
from fixtures.settings import REPOSITORY
from fixtures.techniques.wrapping import Wrapped
from fixtures.verdicts.image_checks import check_images
from fixtures.verdicts.likeness import ssim
from fixtures.workloads import WORKLOADS, default_workloads, storybook
from fixtures.workloads.byte_tokenizer import T5_SPECIAL
from fixtures.workloads.storybook import IMAGE_PX
from fixtures.workloads.storybook.training.captions import plain_caption
from fixtures.workloads.storybook.training.dit import new_scheduler, new_t5, new_transformer
from fixtures.workloads.storybook.training.held_out import draw, held_out_scenes
from fixtures.workloads.storybook.training.scenery import PLACES
from fixtures.workloads.storybook.training.world import render
from fixtures.workloads.storybook_dit import GUIDANCE_SCALE, PIPELINE_FOLDER, TOKENS
from tests.support.running import own_environment

MAX_WEIGHTS_BYTES = 20_000_000
WORKLOAD = WORKLOADS["storybook-dit"]
MODELS = ("transformer", "vae", "text_encoder", "text_encoder_2")


@pytest.fixture(scope="module")
def pipeline() -> Any:
    from diffusers import FluxPipeline

    pipeline = FluxPipeline.from_pretrained(PIPELINE_FOLDER)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


# What is stored


def test_weights_are_safetensors_and_small() -> None:
    files = [file for file in PIPELINE_FOLDER.rglob("*") if file.is_file()]
    assert {file.suffix for file in files} == {".safetensors", ".json"}
    weights = [file for file in files if file.suffix == ".safetensors"]
    assert len(weights) == len(MODELS)
    assert sum(file.stat().st_size for file in files) <= MAX_WEIGHTS_BYTES


def test_configurations_name_no_path_of_a_machine() -> None:
    for file in PIPELINE_FOLDER.rglob("*.json"):
        if file.name != "tokenizer.json":
            values = json.loads(file.read_text(encoding="utf-8")).values()
            words = {value for value in values if isinstance(value, str)} - {*T5_SPECIAL}
            assert not [word for word in words if "/" in word]


@pytest.mark.parametrize(
    "file", ["vae/diffusion_pytorch_model.safetensors", "text_encoder/model.safetensors"]
)
def test_the_vae_and_the_clip_encoder_are_storybook_s(file: str) -> None:
    digests = {
        hashlib.sha256((folder / file).read_bytes()).hexdigest()
        for folder in (PIPELINE_FOLDER, storybook.PIPELINE_FOLDER)
    }
    assert len(digests) == 1


def test_the_licence_is_the_repository_s() -> None:
    card = (PIPELINE_FOLDER.parent / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "Apache-2.0" in card
    assert "Apache License" in (REPOSITORY / "LICENSE").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("part", "make"),
    [
        ("transformer/config.json", new_transformer),
        ("text_encoder_2/config.json", new_t5),
        ("scheduler/scheduler_config.json", new_scheduler),
    ],
)
def test_training_builds_the_committed_architecture(part: str, make: Callable[[], Any]) -> None:
    committed = json.loads((PIPELINE_FOLDER / part).read_text(encoding="utf-8"))
    config = make().config
    built = json.loads(json.dumps(config.to_dict() if hasattr(config, "to_dict") else dict(config)))
    set_later = {"dtype", "architectures", "transformers_version", "_name_or_path"}
    names = committed.keys() & built.keys() - set_later
    assert len(names) > 10
    assert {name: built[name] for name in names} == {name: committed[name] for name in names}


# Loading


def test_every_part_loads_as_fp32_in_a_plain_pipeline(pipeline: Any) -> None:
    assert {getattr(pipeline, part).dtype for part in MODELS} == {torch.float32}
    assert type(pipeline.scheduler).__name__ == "FlowMatchEulerDiscreteScheduler"
    assert not pipeline.transformer.config.guidance_embeds


def test_the_workload_loads_the_same_weights(pipeline: Any) -> None:
    loaded = WORKLOAD.load(torch.float32)
    for part in MODELS:
        theirs = getattr(pipeline, part).state_dict()
        mine = getattr(loaded, part).state_dict()
        assert mine.keys() == theirs.keys()
        assert all(torch.equal(mine[name], theirs[name]) for name in mine)


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


LOADING = """
import sys
import torch
from fixtures.workloads import WORKLOADS
for weights in ("", "random"):
    WORKLOADS["storybook-dit"].with_weights(weights).load(torch.float32)
print(*(name for name in sys.modules if name.startswith("fixtures.workloads.storybook.training")))
"""


def test_loading_imports_nothing_of_the_training() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LOADING],
        cwd=REPOSITORY,
        env=own_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1].split() == []


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


def test_the_figures_are_of_plain_calls_with_a_seed(pipeline: Any) -> None:
    """The evaluation draws the noise itself, as the pipeline would have."""
    prompt = WORKLOAD.call.prompt
    plain = pipeline(
        prompt,
        negative_prompt="",
        true_cfg_scale=GUIDANCE_SCALE,
        num_inference_steps=2,
        max_sequence_length=TOKENS,
        height=IMAGE_PX,
        width=IMAGE_PX,
        generator=torch.Generator().manual_seed(7),
        output_type="np",
    ).images
    np.testing.assert_allclose(draw(pipeline, [prompt], [7], steps=2), plain, atol=1e-5)


def place_images() -> dict[str, NDArray[np.float64]]:
    """The mean of the world's own images of each place by day."""
    scenes = [one for one in held_out_scenes(400) if one.surroundings.hour == "day"]
    images: dict[str, list[Any]] = {place: [] for place in PLACES}
    for scene in scenes:
        images[scene.surroundings.place].append(np.asarray(render(scene), np.float64) / 255)
    return {place: np.mean(drawn, axis=0) for place, drawn in images.items()}


def test_it_draws_the_place_that_is_asked_for(pipeline: Any) -> None:
    """Each image is nearer to the world's images of its place than to those of any other."""
    wanted = place_images()
    scenes = [
        next(one for one in held_out_scenes(400) if _shows(one, place, "day")) for place in wanted
    ]
    drawn = draw(pipeline, [plain_caption(scene) for scene in scenes], range(len(scenes)), steps=10)
    nearest = [
        min(wanted, key=lambda place: float(np.square(image - wanted[place]).mean()))
        for image in drawn
    ]
    assert nearest == list(wanted)


def _shows(scene: Any, place: str, hour: str) -> bool:
    return bool(scene.surroundings.place == place and scene.surroundings.hour == hour)


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


def test_a_wrapped_pipeline_is_asked_as_a_flux_is() -> None:
    """As the judge asks one under a technique: by what it holds, whatever its class."""
    workload = WORKLOADS["storybook-dit"]
    wanted = draw(workload.load(torch.float32), ["a red house"], [0], steps=1)
    wrapped = Wrapped(workload.load(torch.float32))
    np.testing.assert_array_equal(draw(wrapped, ["a red house"], [0], steps=1), wanted)
