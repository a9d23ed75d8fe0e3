"""Pipelines from folders and from the hub, and every way in which they can be wrong."""

from __future__ import annotations

import json
import re
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import torch
from diffusers import StableDiffusionPipeline
from safetensors.torch import load_file, save_file

from fixtures.workloads import loading
from fixtures.workloads.base import WorkloadError
from fixtures.workloads.loading import load_pipeline
from fixtures.workloads.sd15 import DDIM
from fixtures.workloads.twins import SMALL

UNET_FILE = "unet/diffusion_pytorch_model.safetensors"


def refusal(weights: str | Path) -> str:
    """What loading says, which must be one sentence with a remedy."""
    with pytest.raises(WorkloadError) as refused:
        load_pipeline(str(weights), torch.float32, DDIM.layout)
    sentence = str(refused.value)
    assert "\n" not in sentence
    assert "; " in sentence
    return sentence


def change_index(folder: Path, **changes: Any) -> None:
    path = folder / "model_index.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_saved_pipeline_comes_back_in_the_dtype_asked_for(
    saved: Path, dtype: torch.dtype
) -> None:
    pipeline = load_pipeline(str(saved), dtype, DDIM.layout)
    original = SMALL["sd15"]("", torch.float32)
    for name in ("unet", "vae", "text_encoder"):
        loaded = dict(getattr(pipeline, name).named_parameters())
        for parameter, tensor in getattr(original, name).named_parameters():
            assert torch.equal(loaded[parameter], tensor.to(dtype)), parameter
    assert pipeline.safety_checker is None
    assert not any(weight.requires_grad for weight in pipeline.unet.parameters())


def test_the_stored_scheduler_stays_unless_another_is_asked_for(saved: Path) -> None:
    stored = load_pipeline(str(saved), torch.float32, DDIM.layout).scheduler
    assert type(stored).__name__ == "DDIMScheduler"
    other = load_pipeline(
        str(saved), torch.float32, DDIM.layout, "UniPCMultistepScheduler"
    ).scheduler
    assert type(other).__name__ == "UniPCMultistepScheduler"
    assert other.config.beta_end == stored.config.beta_end


def test_a_relative_folder_and_a_home_folder_are_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv("HOME", str(folder.parent))
    for weights in ("pipeline", "./pipeline", "~/pipeline"):
        load_pipeline(weights, torch.float32, DDIM.layout)


@pytest.mark.parametrize(
    ("library", "version", "keyword"),
    [
        *(("diffusers", version, "torch_dtype") for version in ("0.30.3", "0.39.0")),
        *(("diffusers", version, "dtype") for version in ("0.40.0", "1.0.0.dev0")),
        *(("transformers", "4.55.4", "torch_dtype"), ("transformers", "4.56.0", "dtype")),
        ("transformers", "5.0.0", "dtype"),
    ],
)
def test_no_dtype_keyword_is_deprecated(
    library: str, version: str, keyword: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "version", {library: version}.__getitem__)
    assert loading.dtype_keyword(library) == keyword


def test_a_folder_that_is_no_pipeline_is_refused(tmp_path: Path) -> None:
    assert "it has no model_index.json" in refusal(tmp_path)


def test_a_file_is_refused(folder: Path) -> None:
    assert "is a file, not a pipeline folder" in refusal(folder / UNET_FILE)


@pytest.mark.parametrize(
    "weights", ["/no/such/folder", "./missing", "a/b/c", "x" * 5000, "a\0/b", "~nobody-here/x"]
)
def test_what_is_neither_folder_nor_hub_id_is_refused(weights: str) -> None:
    sentence = refusal(weights)
    assert "is neither a folder here nor a hub id" in sentence
    assert len(sentence) < 500


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'"text"', b"null", b"[" * 100_000, b"\xff\xfe"]
)
def test_an_unreadable_index_is_refused(folder: Path, content: bytes) -> None:
    (folder / "model_index.json").write_bytes(content)
    assert "has an unreadable model_index.json" in refusal(folder)


def test_a_huge_index_is_not_read(folder: Path) -> None:
    (folder / "model_index.json").write_bytes(b" " * 1_000_001)
    assert "it is too large" in refusal(folder)


def _own_pipeline_module(folder: Path) -> None:
    (folder / "mine.py").write_text("raise SystemExit('ran foreign code')")
    change_index(folder, _class_name=["mine", "Mine"])


@pytest.mark.parametrize("name", ["unet", "vae", "text_encoder"])
def test_pickled_weights_are_refused(folder: Path, name: str) -> None:
    for path in (folder / name).glob("*.safetensors"):
        weights = load_file(path)
        path.unlink()
        torch.save(weights, path.with_suffix(".bin"))
    assert re.search(rf"has no {name}/\w+\.safetensors, whole or in shards", refusal(folder))


@pytest.mark.parametrize("size", [0, 1000])
def test_truncated_weights_are_refused(folder: Path, size: int) -> None:
    path = folder / UNET_FILE
    path.write_bytes(path.read_bytes()[:size])
    assert "cannot be loaded" in refusal(folder)


@pytest.mark.parametrize(
    ("file", "weight"),
    [
        (UNET_FILE, "conv_in.weight"),
        ("vae/diffusion_pytorch_model.safetensors", "decoder.conv_out.weight"),
        ("text_encoder/model.safetensors", "fc1.weight"),
    ],
)
def test_a_weight_that_no_file_holds_is_named(folder: Path, file: str, weight: str) -> None:
    """The libraries would go on with random or empty memory in its place."""
    weights = load_file(folder / file)
    name = next(name for name in weights if name.endswith(weight))
    del weights[name]
    save_file(weights, folder / file, metadata={"format": "pt"})
    assert re.search(rf"lacks \S*{re.escape(weight)}", refusal(folder))


def test_a_weight_of_another_shape_is_refused(folder: Path) -> None:
    weights = load_file(folder / UNET_FILE)
    weights["conv_in.weight"] = weights["conv_in.weight"][:1].contiguous()
    save_file(weights, folder / UNET_FILE, metadata={"format": "pt"})
    assert "cannot be loaded" in refusal(folder)


def test_a_tokenizer_without_its_vocabulary_is_refused(folder: Path) -> None:
    for path in (folder / "tokenizer").iterdir():
        path.unlink()
    assert "has no vocabulary in tokenizer/" in refusal(folder)


class HubError(OSError):
    """Any failure of the hub's library."""


class GatedRepoError(HubError):
    """Called as the hub's own is."""


class RepositoryNotFoundError(HubError):
    """Called as the hub's own is."""


class OfflineModeIsEnabled(HubError):  # noqa: N818 - the hub's own name
    """Called as the hub's own is."""


def fail_download(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def download(*args: Any, **kwargs: Any) -> str:
        raise error

    monkeypatch.setattr(StableDiffusionPipeline, "download", download)


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (HubError("name resolution failed"), "check the network, or give a pipeline folder"),
        (GatedRepoError("403"), "set HF_TOKEN if it is gated"),
        (RepositoryNotFoundError("404"), "check the id"),
        (OfflineModeIsEnabled("offline"), "unset HF_HUB_OFFLINE"),
    ],
)
def test_a_hub_that_does_not_give_the_pipeline_is_told_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch, error: Exception, remedy: str
) -> None:
    fail_download(monkeypatch, error)
    assert remedy in refusal("owner/name")


def test_a_token_never_reaches_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret-of-mine")
    said = "401 for secret-of-mine, hf_abcdefgh, https://me:pass@proxy:8080"
    fail_download(monkeypatch, HubError(said))
    sentence = refusal("owner/name")
    assert "401 for ***, ***, https://***@proxy:8080" in sentence


def test_a_hub_snapshot_is_checked_like_a_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def download(hub_id: str, **kwargs: Any) -> str:
        asked.update(kwargs, hub_id=hub_id)
        return str(folder)

    monkeypatch.setattr(StableDiffusionPipeline, "download", download)
    load_pipeline("owner/name", torch.float32, DDIM.layout)
    assert asked == {
        **{"hub_id": "owner/name", "use_safetensors": True, "trust_remote_code": False},
        **dict.fromkeys(("safety_checker", "image_encoder", "feature_extractor")),
    }
    _own_pipeline_module(folder)
    assert "brings code along ('mine.py')" in refusal("owner/name")
    (folder / "mine.py").unlink()
    assert "not a StableDiffusionPipeline" in refusal("owner/name")


def test_running_out_of_memory_is_not_taken_for_a_bad_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_download(monkeypatch, MemoryError())
    with pytest.raises(MemoryError):
        load_pipeline("owner/name", torch.float32, DDIM.layout)
