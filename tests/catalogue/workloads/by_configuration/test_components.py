"""Components that need a package which is not there, and call for none of what it does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers

from fixtures.catalogue.workloads import loading
from fixtures.catalogue.workloads.by_configuration.workload import workload_of_folder
from fixtures.catalogue.workloads.composition import composition_of
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
    kinds = composition_of(folder).components
    made = loading._processor(folder / "processor", kinds["processor"][1])
    assert isinstance(made, transformers.Qwen2VLProcessor)
    assert made.image_token_id == 151655
    assert not hasattr(made, "video_processor")
