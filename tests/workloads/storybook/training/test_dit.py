"""The parts of storybook-dit fit what FluxPipeline does, and its training runs from end to end."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from diffusers import FluxPipeline
from torch import Tensor
from transformers import CLIPTokenizer, T5TokenizerFast

from fixtures.workloads.storybook.training import flow_loss, train_dit
from fixtures.workloads.storybook.training.captions import caption, plain_caption
from fixtures.workloads.storybook.training.dit import (
    new_t5,
    new_t5_tokenizer,
    new_transformer,
    packed,
)
from fixtures.workloads.storybook.training.flow_loss import FlowLoss, positions
from fixtures.workloads.storybook.training.loop import Draw, Worker
from fixtures.workloads.storybook.training.tokens import world_tokenizer
from fixtures.workloads.storybook.training.world import scene_number
from fixtures.workloads.storybook_dit import TOKENS

pytestmark = pytest.mark.long

SERIES = 77


def captions(count: int) -> list[str]:
    """Plain ones and others, from a series of their own."""
    rng = random.Random(0)
    scenes = [scene_number(SERIES, index) for index in range(count)]
    return [plain_caption(scene) for scene in scenes] + [caption(scene, rng) for scene in scenes]


# The tokenizer


def test_a_caption_has_one_token_a_word_and_fits() -> None:
    tokenizer = new_t5_tokenizer()
    assert max(len(tokenizer(text).input_ids) for text in captions(500)) <= TOKENS
    text = "an orange horse in a meadow at night"
    assert len(tokenizer(text).input_ids) == len(text.split()) + 1
    assert tokenizer.decode(tokenizer(text).input_ids, skip_special_tokens=True) == text


def test_a_stored_tokenizer_gives_the_tokens_of_the_training(tmp_path: Path) -> None:
    """Transformers 5 splits prompts in its own way, whatever the stored tokenizer says."""
    tokenizer = new_t5_tokenizer()
    tokenizer.save_pretrained(tmp_path)
    stored = T5TokenizerFast.from_pretrained(tmp_path, local_files_only=True)
    assert stored.model_max_length == TOKENS
    for text in ("", " a  Zebra, on Mars!", "bücher", *captions(100)):
        assert stored(text).input_ids == tokenizer(text).input_ids


# The transformer, as the pipeline calls it


def test_latents_are_packed_as_the_pipeline_does() -> None:
    latents = torch.randn(2, 4, 16, 16)
    theirs = FluxPipeline._pack_latents(latents, 2, 4, 16, 16)
    assert torch.equal(packed(latents), theirs)


def test_patches_are_where_the_pipeline_says() -> None:
    theirs = FluxPipeline._prepare_latent_image_ids(1, 8, 8, torch.device("cpu"), torch.float32)
    assert torch.equal(positions(8), theirs)


def test_an_untrained_transformer_predicts_no_flow() -> None:
    """So the first loss is the mean square of the flow, whatever the prompt."""
    transformer = new_transformer()
    states, pooled, text = torch.randn(1, 64, 16), torch.randn(1, 96), torch.randn(1, TOKENS, 128)
    flow = transformer(
        hidden_states=states,
        timestep=torch.tensor([0.5]),
        pooled_projections=pooled,
        encoder_hidden_states=text,
        txt_ids=torch.zeros(TOKENS, 3),
        img_ids=positions(8),
        return_dict=False,
    )[0]
    assert flow.abs().max() == 0


def test_muon_trains_the_matrices_between_the_ends() -> None:
    named = train_dit.named_parameters(new_transformer(), new_t5())
    elementwise = [name for name in named if name.endswith(train_dit.ELEMENTWISE)]
    assert elementwise == [
        "transformer.x_embedder.weight",
        "transformer.proj_out.weight",
        "t5.shared.weight",
        "t5.encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
    ]


# The loss

LATENTS = torch.randn(3, 4, 16, 16, generator=torch.Generator().manual_seed(0))


class KnowsTheFlow(torch.nn.Module):
    """Predicts the flow from the noisy latents, since it knows the only image that there is."""

    def __init__(self, image: Tensor) -> None:
        super().__init__()
        self.image = image

    def forward(self, hidden_states: Tensor, timestep: Tensor, **_: Any) -> tuple[Tensor]:
        return ((hidden_states - packed(self.image)) / timestep.view(-1, 1, 1),)


def loss_with(transformer: Any, tmp_path: Path, asked: list[Any] | None = None) -> FlowLoss:
    def clip(numbers: Tensor) -> Any:
        return SimpleNamespace(pooler_output=torch.zeros(len(numbers), 96))

    def t5(numbers: Tensor) -> tuple[Tensor]:
        if asked is not None:
            asked.extend(new_t5_tokenizer().batch_decode(numbers, skip_special_tokens=True))
        return (torch.zeros(len(numbers), TOKENS, 128),)

    worker = Worker(0, torch.device("cpu"), tmp_path, torch.float32)
    tokenizer: CLIPTokenizer = world_tokenizer()
    parts: dict[str, Any] = {"transformer": transformer, "t5": t5, "clip": clip}
    return FlowLoss(**parts, clip_tokenizer=tokenizer, latents=LATENTS[:1], worker=worker)


def test_who_knows_the_flow_from_image_to_noise_has_no_loss(tmp_path: Path) -> None:
    loss, values = loss_with(KnowsTheFlow(LATENTS[:1]), tmp_path)(Draw.of(0, 0, 0))
    assert loss < 1e-6
    assert values["loss"] == pytest.approx(loss.item())
    other, _ = loss_with(KnowsTheFlow(LATENTS[1:2]), tmp_path)(Draw.of(0, 0, 0))
    assert other > 0.1


def test_some_captions_are_empty_for_guidance(tmp_path: Path) -> None:
    asked: list[str] = []
    loss_of = loss_with(KnowsTheFlow(LATENTS[:1]), tmp_path, asked)
    for step in range(20):
        loss_of(Draw.of(0, step, 0))
    share = asked.count("") / len(asked)
    assert len(asked) == 20 * flow_loss.IMAGES_PER_STEP
    assert share == pytest.approx(flow_loss.EMPTY_CAPTION_SHARE, abs=0.03)


def test_times_lie_between_image_and_noise_and_are_densest_in_the_middle(tmp_path: Path) -> None:
    times = loss_with(None, tmp_path)._times(64, Draw.of(0, 0, 0))
    assert 0 < times.min() < times.max() < 1
    assert times.median() == pytest.approx(0.5, abs=0.02)
    assert ((times > 0.25) & (times < 0.75)).float().mean() > 0.7


# The script


def test_the_whole_script_makes_a_pipeline_that_loads_as_fp32(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow_loss, "IMAGES_PER_STEP", 2)
    train_dit.main([
        "--work-folder", str(tmp_path / "work"), "--output", str(tmp_path / "pipeline"),
        "--workers", "1", "--images", "4", "--steps", "2",
    ])  # fmt: skip
    pipeline = FluxPipeline.from_pretrained(tmp_path / "pipeline")
    for part in (pipeline.transformer, pipeline.text_encoder, pipeline.text_encoder_2):
        assert part.dtype == torch.float32
    assert pipeline.vae.dtype == torch.float32
    assert pipeline.vae.config.shift_factor != 0
    assert pipeline.transformer.proj_out.weight.abs().max() > 0
    for config in (tmp_path / "pipeline").rglob("config.json"):
        assert "_name_or_path" not in config.read_text(encoding="utf-8")
