"""Seeded random weights: the same in every release, and small enough for fp16.

What stays in fp32 is compared with what the libraries load: `test_layouts.py`. What half precision
draws is like what fp32 draws: `test_transformer_workloads.py`.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from fixtures.catalogue.workloads.random_weights import random_model
from fixtures.devices.torch_settings import one_thread
from tests.support.small_workloads import small_workload


def test_weights_depend_on_their_own_name_alone() -> None:
    """A release that adds a layer leaves the weights of the others as they were."""

    def weights(*names: str) -> torch.Tensor:
        layers = {name: nn.Linear(4, 4) for name in names}
        drawn = random_model(lambda: nn.ModuleDict(layers), torch.float32)
        stored: torch.Tensor = drawn[names[-1]].weight  # type: ignore[assignment]
        return stored

    assert torch.equal(weights("b"), weights("a", "b"))
    assert not torch.equal(weights("a"), weights("b"))


def test_tied_weights_stay_tied() -> None:
    encoder = small_workload("flux").load(torch.float32).text_encoder_2
    assert encoder.shared.weight is encoder.encoder.embed_tokens.weight


@pytest.mark.parametrize("layer", [nn.Linear(768, 768), nn.Conv2d(64, 64, 3, padding=1)])
def test_a_layer_never_enlarges_what_it_is_given(layer: nn.Module) -> None:
    drawn = random_model(lambda: layer, torch.float32)
    shape = (1, 64, 32, 32) if isinstance(layer, nn.Conv2d) else (64, 768)
    out = drawn(torch.randn(shape, generator=torch.Generator().manual_seed(0)))
    assert 0.4 < out.std().item() < 0.7


def test_activations_stay_far_below_the_limit_of_half_precision() -> None:
    workload = small_workload("sd15")
    pipeline = workload.load(torch.float32)
    peaks: list[float] = []

    def note(module: nn.Module, inputs: Any, output: Any) -> None:
        if isinstance(output, torch.Tensor):
            peaks.append(output.abs().max().item())

    for component in (pipeline.unet, pipeline.vae.decoder, pipeline.text_encoder):
        for module in component.modules():
            module.register_forward_hook(note)
    with one_thread():
        workload.draw(pipeline, steps=10)
    assert 1 < max(peaks) < torch.finfo(torch.float16).max / 100
