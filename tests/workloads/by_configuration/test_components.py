"""Components that need a package which is not there, and call for none of what it does."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers
from torch.utils._python_dispatch import TorchDispatchMode

from fixtures.workloads import loading
from fixtures.workloads.by_configuration.workload import (
    decodes_in_tiles_only,
    workload_of_folder,
)
from fixtures.workloads.composition import composition_of
from tests.support.configurations import FULL_SIZE, write_pipeline

# What pipelines warn of concerns packages under test.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.parametrize(("config", "length"), [({"model_max_length": 77}, 77), ({}, 512)])
def test_without_sentencepiece_every_byte_is_a_token(
    config: dict[str, int], length: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CogVideoX, PixArt and Chroma publish their T5's vocabulary for sentencepiece alone."""
    stored = folder / "tokenizer"
    (stored / "tokenizer.json").rename(stored / "spiece.model")
    (stored / "tokenizer_config.json").write_text(json.dumps(config))
    monkeypatch.setattr(transformers.utils, "is_sentencepiece_available", lambda: False)
    tokenizer = workload_of_folder(str(folder)).by_configuration.load(torch.bfloat16).tokenizer
    assert tokenizer.model_max_length == length
    assert len(tokenizer("on mars").input_ids) == len(" on mars") + 1


def test_a_processor_does_without_videos_where_torchvision_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "find_spec", lambda name: None)
    folder = write_pipeline("QwenImageEditPipeline", tmp_path / "mine", FULL_SIZE)
    kinds = composition_of(folder, {}).components
    made = loading._processor(folder / "processor", kinds["processor"][1])
    assert isinstance(made, transformers.Qwen2VLProcessor)
    assert made.image_token_id == 151655
    assert not hasattr(made, "video_processor")


def test_a_vae_that_decodes_in_tiles_only_says_so_in_its_code() -> None:
    def only(self: Any, z: Any) -> Any:
        if self.use_tiling:
            return self.tiled_decode(z)
        raise NotImplementedError

    def either(self: Any, z: Any) -> Any:
        return self.tiled_decode(z) if self.use_tiling else z

    assert decodes_in_tiles_only(SimpleNamespace(_decode=only))
    assert not decodes_in_tiles_only(SimpleNamespace(_decode=either))
    assert not decodes_in_tiles_only(None)


class Made(TorchDispatchMode):
    """The devices of all tensors that operations give."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.devices: set[str] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor):
            self.devices.add(made.device.type)
        return made


def test_a_model_without_weights_takes_no_memory_not_even_for_a_moment() -> None:
    with Made() as made:
        model = loading.without_weights(lambda: torch.nn.Linear(64, 64))
        loading.without_weights(lambda: torch.nn.Conv2d(64, 64, 1))
    assert made.devices == {"meta"}
    assert model.weight.shape == (64, 64)
    assert loading.without_weights(lambda: torch.nn.BatchNorm1d(2)).running_var.sum() == 2
    assert torch.empty(1).device.type == "cpu"
