"""Pipelines come back from folders and from the hub, or it is said what to do."""

from __future__ import annotations

from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import torch
from diffusers import StableDiffusionPipeline

from fixtures.catalogue.workloads import loading
from fixtures.catalogue.workloads.sources import load_pipeline
from tests.catalogue.workloads.refusing import INDEX
from tests.catalogue.workloads.refusing import refusal as refusal_of


def load(weights: str | Path, scheduler: str = "") -> Any:
    return load_pipeline(str(weights), torch.float32, "StableDiffusionPipeline", scheduler)


def refusal(weights: str | Path) -> str:
    return refusal_of(partial(load, weights))


def test_the_stored_scheduler_stays_unless_another_is_asked_for(saved: Path) -> None:
    pipeline = load(saved)
    assert pipeline.safety_checker is None
    stored = pipeline.scheduler
    assert type(stored).__name__ == "DDIMScheduler"
    other = load(saved, scheduler="UniPCMultistepScheduler").scheduler
    assert type(other).__name__ == "UniPCMultistepScheduler"
    assert other.config.beta_end == stored.config.beta_end


def test_a_relative_folder_and_a_home_folder_are_found(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(saved.parent)
    monkeypatch.setenv("HOME", str(saved.parent))
    for weights in (saved.name, f"./{saved.name}", f"~/{saved.name}"):
        load(weights)


@pytest.mark.parametrize(
    ("library", "version", "keyword"),
    [
        ("diffusers", "0.39.0", "torch_dtype"),
        ("diffusers", "0.40.0", "dtype"),
        ("diffusers", "1.0.0.dev0", "dtype"),
        ("transformers", "4.55.4", "torch_dtype"),
        ("transformers", "4.56.0", "dtype"),
    ],
)
def test_no_dtype_keyword_is_deprecated(
    library: str, version: str, keyword: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "version", {library: version}.__getitem__)
    assert loading.dtype_keyword(library) == keyword


def test_a_file_is_refused(saved: Path) -> None:
    assert "is a file, not a pipeline folder" in refusal(saved / INDEX)


@pytest.mark.parametrize(
    "weights", ["/no/such/folder", "./missing", "a/b/c", "x" * 5000, "a\0/b", "~nobody-here/x"]
)
def test_what_is_neither_folder_nor_hub_id_is_refused(weights: str) -> None:
    sentence = refusal(weights)
    assert "is neither a folder here nor a hub id" in sentence
    assert len(sentence) < 500


# The hub


SECRETS = "401 for secret-of-mine, hf_abcdefgh, https://me:pass@proxy:8080"


def fail_download(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def download(*args: Any, **kwargs: Any) -> str:
        raise error

    monkeypatch.setattr(StableDiffusionPipeline, "download", download)


def test_a_hub_that_does_not_give_the_pipeline_is_named_with_a_remedy_and_no_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret-of-mine")
    fail_download(monkeypatch, OSError(SECRETS))
    said = refusal("owner/name")
    assert "did not provide it (OSError: 401 for ***, ***, https://***@proxy:8080)" in said
    assert "; check the id and the network, unset HF_HUB_OFFLINE, accept its licence" in said


def test_a_hub_snapshot_is_checked_like_a_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def download(hub_id: str, **kwargs: Any) -> str:
        asked.update(kwargs, hub_id=hub_id)
        return str(folder)

    monkeypatch.setattr(StableDiffusionPipeline, "download", download)
    load("owner/name")
    assert asked == {
        **{"hub_id": "owner/name", "use_safetensors": True, "trust_remote_code": False},
        **dict.fromkeys(("safety_checker", "watermarker", "image_encoder", "feature_extractor")),
    }
    (folder / "mine.py").write_text("raise SystemExit('ran foreign code')")
    assert "brings code along ('mine.py')" in refusal("owner/name")


def test_running_out_of_memory_is_not_taken_for_a_bad_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fail_download(monkeypatch, MemoryError())
    with pytest.raises(MemoryError):
        load("owner/name")
