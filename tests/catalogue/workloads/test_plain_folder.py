"""A folder of weights is plain data of the expected classes, or refused in a sentence."""

from __future__ import annotations

import os
import pickle
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from fixtures.catalogue.workloads.loading import check_folder
from fixtures.catalogue.workloads.plain_folder import CODE, UnfitFolderError
from fixtures.catalogue.workloads.sources import load_pipeline
from fixtures.catalogue.workloads.twins import SMALL
from tests.catalogue.workloads.refusing import (
    INDEX,
    Damage,
    change_json,
    changed,
    refusal,
    removed,
    written,
)

UNET_CONFIG = "unet/config.json"
SCHEDULER = "scheduler/scheduler_config.json"
TOKENIZER = "tokenizer/tokenizer_config.json"
CONFIGURATIONS = [UNET_CONFIG, "text_encoder/config.json", TOKENIZER, SCHEDULER, INDEX]
HOSTILE: list[tuple[str, Any]] = [
    ("_attn_implementation", "x/kernel"),
    ("attn_implementation", {"": "x/kernel"}),
    ("auto_map", {"AutoModel": "mine.Mine"}),
    ("configuration_files", ["config.4.0.0.json"]),
    ("custom_generate", "owner/name"),
    ("custom_pipeline", "mine"),
    ("tokenizer_file", "/etc/passwd"),
    ("transformers_weights", "adapter_model.bin"),
    ("trust_remote_code", True),
    ("use_kernels", True),
    ("vocab", "../elsewhere.json"),
]
UNET = "unet/diffusion_pytorch_model.safetensors"
TEXT_ENCODER = "text_encoder/model.safetensors"
UNLOADABLE = "cannot be loaded ("
"""What is said of what the libraries refuse."""


def load(folder: Path, *, values: bool = True) -> Any:
    return load_pipeline(str(folder), torch.float32, "StableDiffusionPipeline", values=values)


def pickled(file: str) -> Damage:
    def damage(folder: Path) -> None:
        torch.save(load_file(folder / file), (folder / file).with_suffix(".bin"))
        (folder / file).unlink()

    return damage


def truncated(folder: Path) -> None:
    (folder / UNET).write_bytes((folder / UNET).read_bytes()[:1000])


def without_weight(file: str, name: str) -> Damage:
    """The libraries would go on with random or empty memory in its place."""

    def damage(folder: Path) -> None:
        weights = load_file(folder / file)
        del weights[next(key for key in weights if key.endswith(name))]
        save_file(weights, folder / file, metadata={"format": "pt"})

    return damage


def of_another_shape(folder: Path) -> None:
    weights = load_file(folder / UNET)
    weights["conv_in.weight"] = weights["conv_in.weight"][:1].contiguous()
    save_file(weights, folder / UNET, metadata={"format": "pt"})


def without_files(name: str) -> Damage:
    def damage(folder: Path) -> None:
        for path in (folder / name).iterdir():
            path.unlink()

    return damage


def sharded(weight_map: Any) -> Damage:
    return changed(f"{UNET}.index.json", weight_map=weight_map)


UNREADABLE = (b"{", b"[]", b"[" * 100_000, b"\xff\xfe")
NO_SHARD = f"as a shard in {UNET}.index.json, which is not a safetensors file there; save it again"
REFUSED: list[tuple[Damage, str]] = [
    # Code may be called as the library is, and what looks like data is read by its true ending.
    (written("scheduler/DIFFUSERS.PY"), "brings code along"),
    # With PEFT installed transformers would load the model that it names.
    (changed("text_encoder/adapter_config.json", base_model_name_or_path="x/y"), "brings code"),
    (removed(INDEX), f"it has no {INDEX}; give a folder written by"),
    *((written(INDEX, content), f"has an unreadable {INDEX}") for content in UNREADABLE),
    *((written(TOKENIZER, content), f"unreadable {TOKENIZER}") for content in UNREADABLE[:2]),
    (written(INDEX, b" " * 1_000_001), "it is too large"),
    (changed(INDEX, _class_name="OtherPipeline"), "holds 'OtherPipeline', not a Stable"),
    (changed(INDEX, _class_name=["mine", "Mine"]), "as its class in model_index.json, which"),
    (without_files("tokenizer"), "has no vocabulary in tokenizer/, for which it needs"),
    (changed(INDEX, scheduler=["os", "system"]), f"as scheduler in {INDEX}, which is of a foreign"),
    (changed(INDEX, scheduler=["diffusers", "__class__"]), "which is no model, scheduler"),
    (changed(INDEX, scheduler=["diffusers", "schedulers"]), "has no schedulers; install a release"),
    (changed(INDEX, scheduler=["diffusers", ["DDIMScheduler"]]), "which is not a class"),
]
"""With weights and without."""
REFUSED_WITH_WEIGHTS: list[tuple[Damage, str]] = [
    (changed(INDEX, scheduler=["diffusers", "UNet2DConditionModel"]), "has no scheduler/diffusion"),
    (changed(INDEX, scheduler=["diffusers", "AutoModel"]), "unreadable scheduler/config.json"),
    (changed(INDEX, unet=["mine", "Mine"]), "as unet in model_index.json, which is of a foreign"),
    (changed(INDEX, unet=None), "has no unet in model_index.json, which a StableDiffusionPipeline"),
    (changed(UNET_CONFIG, quantization_config={"load_in_8bit": True}), "is quantized (quantiz"),
    (lambda folder: shutil.rmtree(folder / "vae"), "has no folder vae/; copy or download"),
    (removed(UNET_CONFIG), UNLOADABLE),
    (pickled(UNET), f"has no {UNET}, whole or in shards; save it again"),
    (pickled(TEXT_ENCODER), f"has no {TEXT_ENCODER}, whole or in shards"),
    (lambda folder: (folder / UNET).rename(folder / "unet/x.fp16.safetensors"), f"has no {UNET}"),
    (written(UNET), UNLOADABLE),
    (truncated, UNLOADABLE),
    (of_another_shape, UNLOADABLE),
    (without_weight(UNET, "conv_in.weight"), "lacks unet.conv_in.weight; copy or download"),
    (without_weight(TEXT_ENCODER, "fc1.weight"), "fc1.weight; copy or download"),
    # Both libraries unpickle what has another ending.
    *((sharded({"w": to}), NO_SHARD) for to in ("pickled.bin", "../x.safetensors", 1)),
    *((sharded(none), "names no weights in unet/") for none in (None, "text")),
    (sharded({"w": "missing.safetensors"}), UNLOADABLE),
]


@pytest.mark.parametrize(("damage", "says"), [*REFUSED, *REFUSED_WITH_WEIGHTS])
def test_an_unfit_folder_is_refused(damage: Damage, says: str, folder: Path) -> None:
    damage(folder)
    sentence = refusal(partial(load, folder))
    assert says in sentence
    assert (UNLOADABLE in sentence) == (says == UNLOADABLE)
    if (damage, says) in REFUSED:
        assert says in refusal(partial(load, folder, values=False))


@pytest.mark.parametrize("place", ["", "scheduler", "text_encoder/custom_generate", "more/below"])
def test_code_is_refused_wherever_it_lies(folder: Path, place: str) -> None:
    (folder / place).mkdir(parents=True, exist_ok=True)
    for ending in CODE:
        path = folder / place / f"generate{ending}"
        path.write_text("raise SystemExit('ran foreign code')")
        sentence = refusal(partial(load, folder))
        assert f"brings code along ({str(path.relative_to(folder))!r}); remove" in sentence
        path.unlink()


def test_links_within_the_folder_and_into_the_hub_s_cache_are_followed(
    saved: Path, tmp_path: Path
) -> None:
    snapshot, blobs = tmp_path / "models--x/snapshots/abc", tmp_path / "models--x/blobs"
    shutil.copytree(saved, snapshot)
    blobs.mkdir()
    (snapshot / UNET).rename(blobs / "1234")
    (snapshot / UNET).symlink_to("../../../blobs/1234")
    (snapshot / "vae").rename(snapshot / "other")
    (snapshot / "vae").symlink_to("other")
    load(snapshot)
    (tmp_path / "link").symlink_to(snapshot)
    load(tmp_path / "link")


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.mark),)


def test_pickled_weights_beside_the_safetensors_are_not_opened(folder: Path) -> None:
    mark = folder / "unpickled"
    trap = pickle.dumps(Trap(mark))
    for component in ("unet", "vae", "text_encoder", "scheduler", "tokenizer", ""):
        for name in ("diffusion_pytorch_model.bin", "pytorch_model.bin", "more.ckpt", "x.pt"):
            (folder / component / name).write_bytes(trap)
    load(folder)
    assert not mark.exists()
    pickle.loads(trap)  # noqa: S301
    assert mark.exists()  # the trap works


@pytest.mark.parametrize("file", CONFIGURATIONS)
def test_a_key_that_could_load_code_or_a_file_is_named(folder: Path, file: str) -> None:
    plain = (folder / file).read_text()
    for key, value in HOSTILE:
        for hostile in ({key: value}, {"text_config": [{key: value}]}):
            change_json(folder / file, **hostile)
            said = f"has the key {key!r} in {file}, which could load code or another file; remove"
            assert said in refusal(partial(load, folder))
            (folder / file).write_text(plain)


def test_any_other_key_is_taken_and_a_class_that_only_a_configuration_names(folder: Path) -> None:
    more = {"new": "text", "newest": None, "_attn_implementation_autoset": True, "auto_map": None}
    # What the libraries write themselves.
    more |= dict.fromkeys(("_name_or_path", "name_or_path"), "openai/clip")
    more |= {"special_tokens_map_file": "./special_tokens_map.json"}
    for file in CONFIGURATIONS:
        change_json(folder / file, **more, use_kernels=False)
    change_json(folder / UNET_CONFIG, _class_name="Mine")
    change_json(folder / TOKENIZER, tokenizer_class="Mine")
    change_json(folder / INDEX, safety_checker=["mine", "Mine"], other=["mine", "Mine"])
    pipeline = load(folder)
    assert type(pipeline.unet).__name__ == "UNet2DConditionModel"
    assert pipeline.safety_checker is None


def test_what_reads_the_vocabulary_of_t5_is_named_where_it_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "pipeline"
    SMALL["pixart-sigma"]("", torch.float32).save_pretrained(folder)
    check_folder(folder, with_weights=True)
    (folder / "tokenizer/tokenizer.json").rename(folder / "tokenizer/spiece.model")
    monkeypatch.setattr("transformers.utils.is_protobuf_available", lambda: True)
    monkeypatch.setattr("transformers.utils.is_sentencepiece_available", lambda: True)
    check_folder(folder, with_weights=True)
    monkeypatch.setattr("transformers.utils.is_sentencepiece_available", lambda: False)
    check_folder(folder, with_weights=False)
    with pytest.raises(UnfitFolderError, match="pip install sentencepiece protobuf"):
        check_folder(folder, with_weights=True)
