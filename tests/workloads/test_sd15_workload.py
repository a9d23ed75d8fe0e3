"""Stable Diffusion 1.5: its seeded weights, its local tokenizer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from diffusers import AutoencoderKL, DDIMScheduler, UniPCMultistepScheduler
from torch import nn
from transformers import CLIPTextConfig, CLIPTextModel

from fixtures.workloads import sd15
from fixtures.workloads.byte_tokenizer import byte_tokenizer, byte_vocabulary
from fixtures.workloads.random_weights import random_model
from fixtures.workloads.sd15 import DDIM, UNIPC
from fixtures.workloads.twins import SMALL
from tests.support.small_workloads import small_workload

CONFIGS = SMALL["sd15"].configs


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def test_the_workloads_are_the_calls_of_the_docs() -> None:
    calls = {
        workload.name: (
            workload.kind,
            workload.call.width,
            workload.call.height,
            workload.call.steps,
            workload.call.batch,
        )
        for workload in sd15.WORKLOADS
    }
    assert calls == {
        "sd15": ("single", 512, 512, 50, 1),
        "sd15-batch32": ("batch", 512, 512, 50, 32),
        "sd15-4k": ("large", 3840, 2224, 20, 1),
    }


def test_the_same_seed_gives_the_same_weights_and_another_seed_others() -> None:
    def weights(seed: int) -> torch.Tensor:
        return random_model(lambda: nn.Linear(8, 8), torch.float32, seed).weight

    assert torch.equal(weights(0), weights(0))
    assert not torch.equal(weights(0), weights(1))


def test_half_precision_weights_are_the_fp32_weights_rounded() -> None:
    full = random_model(lambda: AutoencoderKL(**CONFIGS["vae"]), torch.float32).state_dict()
    half = random_model(lambda: AutoencoderKL(**CONFIGS["vae"]), torch.float16).state_dict()
    assert all(torch.equal(full[name].half(), half[name]) for name in full)


def test_weights_depend_on_their_own_name_alone() -> None:
    """A release that adds a layer leaves the weights of the others as they were."""
    short = nn.ModuleDict({"b": nn.Linear(4, 4)})
    long = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Linear(4, 4)})
    drawn = [random_model(lambda m=m: m, torch.float32) for m in (short, long)]  # type: ignore[misc]
    assert torch.equal(drawn[0]["b"].weight, drawn[1]["b"].weight)


def test_nothing_is_left_on_meta_and_buffers_keep_their_values() -> None:
    encoder = random_model(
        lambda: CLIPTextModel(CLIPTextConfig(**CONFIGS["text_encoder"])), torch.float16
    )
    assert {tensor.device.type for tensor in encoder.parameters()} == {"cpu"}
    assert {tensor.dtype for tensor in encoder.parameters()} == {torch.float16}
    positions = dict(encoder.named_buffers())
    (name,) = (name for name in positions if name.endswith("position_ids"))
    assert positions[name].tolist() == [list(range(77))]


@pytest.mark.parametrize("layer", [nn.Linear(768, 768), nn.Conv2d(64, 64, 3, padding=1)])
def test_a_layer_never_enlarges_what_it_is_given(layer: nn.Module) -> None:
    drawn = random_model(lambda: layer, torch.float32)
    shape = (1, 64, 32, 32) if isinstance(layer, nn.Conv2d) else (64, 768)
    out = drawn(torch.randn(shape, generator=torch.Generator().manual_seed(0)))
    assert 0.4 < out.std().item() < 0.7


def test_activations_stay_far_below_the_limit_of_half_precision() -> None:
    workload = small_workload("sd15")
    pipeline = workload.load(torch.float32)
    peak = 0.0

    def note(module: nn.Module, inputs: Any, output: Any) -> None:
        nonlocal peak
        if isinstance(output, torch.Tensor):
            peak = max(peak, output.abs().max().item())

    for component in (pipeline.unet, pipeline.vae.decoder, pipeline.text_encoder):
        for module in component.modules():
            module.register_forward_hook(note)
    workload.draw(pipeline, steps=10)
    assert 1 < peak < torch.finfo(torch.float16).max / 100


def test_schedulers_keep_the_published_noise_schedule() -> None:
    for source, kind in ((DDIM, DDIMScheduler), (UNIPC, UniPCMultistepScheduler)):
        scheduler = replace(SMALL["sd15"], scheduler=source.scheduler)("", torch.float32).scheduler
        assert type(scheduler) is kind
        config = scheduler.config
        assert (config.beta_start, config.beta_end) == (0.00085, 0.012)
        assert (config.beta_schedule, config.steps_offset) == ("scaled_linear", 1)
    config = SMALL["sd15"]("", torch.float32).scheduler.config
    assert config.clip_sample is False
    assert config.set_alpha_to_one is False


def test_the_tokenizer_has_a_token_for_every_byte_and_the_published_ends() -> None:
    vocabulary = byte_vocabulary()
    assert len(vocabulary) == CONFIGS["text_encoder"]["vocab_size"]
    assert sorted(vocabulary.values()) == list(range(len(vocabulary)))
    tokenizer = byte_tokenizer()
    numbers = tokenizer("A horse, ünïcode!").input_ids
    assert (numbers[0], numbers[-1]) == (49406, 49407)
    assert all(number < 512 for number in numbers[1:-1])
    assert len(numbers) == 2 + len("ahorse,ünïcode!".encode())


def test_the_tokenizer_pads_and_cuts_to_77_tokens() -> None:
    tokenizer = byte_tokenizer()
    assert tokenizer.model_max_length == 77
    for prompt in ("", "a horse " * 40):
        batch = tokenizer(
            prompt, padding="max_length", max_length=77, truncation=True, return_tensors="pt"
        )
        assert batch.input_ids.shape == (1, 77)
