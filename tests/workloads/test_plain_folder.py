"""A folder of weights is plain data of the expected classes, or refused, unread, in a sentence."""

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

from fixtures.workloads.loading import load_pipeline
from fixtures.workloads.plain_folder import CODE, FLAGS, UnfitFolderError, check_keys
from fixtures.workloads.sd15 import DDIM
from tests.workloads.refusing import INDEX, Damage, change_json, changed, refusal, removed, written

CONFIGURATIONS = [
    "unet/config.json",
    "vae/config.json",
    "text_encoder/config.json",
    "tokenizer/tokenizer_config.json",
    "scheduler/scheduler_config.json",
    INDEX,
]
HOSTILE: list[tuple[str, Any]] = [
    ("_attn_implementation", "x/kernel"),
    ("_attn_implementation_internal", "x/kernel"),
    ("attn_implementation", {"": "x/kernel"}),
    ("auto_map", {"AutoModel": "mine.Mine"}),
    ("configuration_files", ["config.4.0.0.json"]),
    ("custom_pipeline", "mine"),
    ("custom_pipeline", True),
    ("quantization_config", {"quant_method": "mine"}),
    ("quantization_config", {"load_in_8bit": True}),
    ("text_config", {"_attn_implementation": "x/kernel"}),
    ("tokenizer_file", "/etc/passwd"),
    ("transformers_weights", "adapter_model.bin"),
    ("trust_remote_code", True),
    ("use_kernels", True),
    ("vocab_file", "../elsewhere.json"),
    ("yet_to_come", [[1, ["mine.Mine"]]]),
]
UNET = "unet/diffusion_pytorch_model.safetensors"
VAE = "vae/diffusion_pytorch_model.safetensors"
TEXT_ENCODER = "text_encoder/model.safetensors"
UNLOADABLE = "cannot be loaded"
"""What is said of weights that only the library can judge."""


def load(folder: Path) -> Any:
    return load_pipeline(str(folder), torch.float32, DDIM.layout)


def said_of(folder: Path) -> str:
    return refusal(partial(load, folder))


def linked_from_elsewhere(name: str) -> Damage:
    def damage(folder: Path) -> None:
        moved = (folder / name).rename(folder.parent / "elsewhere")
        (folder / name).symlink_to(moved)

    return damage


def linked(name: str, target: str) -> Damage:
    return lambda folder: (folder / name).symlink_to(folder / target)


def piped(name: str) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)

    return damage


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


def without_vocabulary(folder: Path) -> None:
    for path in (folder / "tokenizer").iterdir():
        path.unlink()


BROKEN_LINK = "has a broken link 'unet/loop'; copy or download"
UNREADABLE = (b"", b"{", b"[]", b'"text"', b"null", b"[" * 100_000, b"\xff\xfe")
REFUSED: list[tuple[Damage, str]] = [
    # Code may be called as the library is, and what looks like data is read by its true ending.
    (written("scheduler/DIFFUSERS.PY"), "brings code along"),
    (linked_from_elsewhere("unet"), "has a link 'unet' that leads out of it"),
    (linked_from_elsewhere(CONFIGURATIONS[4]), f"has a link {CONFIGURATIONS[4]!r} that leads out"),
    (linked("unet/loop", "nowhere"), BROKEN_LINK),
    (linked("unet/loop", "unet/loop"), BROKEN_LINK),
    (piped(INDEX), "has no model_index.json"),
    (piped(CONFIGURATIONS[4]), "which is not a file"),
    (piped("more"), "which is not a file"),
    # With PEFT installed transformers would load the model that it names.
    (
        changed("text_encoder/adapter_config.json", base_model_name_or_path="owner/other"),
        "has an unknown file text_encoder/adapter_config.json",
    ),
    (removed(INDEX), "it has no model_index.json"),
    *((written(INDEX, content), f"has an unreadable {INDEX}") for content in UNREADABLE),
    (written(INDEX, b" " * 1_000_001), "it is too large"),
    (changed(INDEX, more=["mine", "Mine"]), f"has the key 'more' in {INDEX}"),
    (pickled(UNET), f"has no {UNET}, whole or in shards"),
    (pickled(VAE), f"has no {VAE}, whole or in shards"),
    (pickled(TEXT_ENCODER), f"has no {TEXT_ENCODER}, whole or in shards"),
    (without_vocabulary, "has no vocabulary in tokenizer/"),
    (without_weight(UNET, "conv_in.weight"), "lacks unet.conv_in.weight"),
    (without_weight(VAE, "decoder.conv_out.weight"), "lacks vae.decoder.conv_out.weight"),
    (without_weight(TEXT_ENCODER, "fc1.weight"), "fc1.weight; copy or download"),
    (written(UNET), UNLOADABLE),
    (truncated, UNLOADABLE),
    (of_another_shape, UNLOADABLE),
]


@pytest.mark.parametrize(("damage", "says"), REFUSED)
def test_an_unfit_folder_is_refused(damage: Damage, says: str, folder: Path) -> None:
    damage(folder)
    sentence = said_of(folder)
    assert says in sentence
    assert (UNLOADABLE in sentence) == (says == UNLOADABLE)


@pytest.mark.parametrize("place", ["", "scheduler", "unet", "text_encoder", "more/below"])
def test_code_is_refused_wherever_it_lies(folder: Path, place: str) -> None:
    (folder / place).mkdir(parents=True, exist_ok=True)
    for ending in CODE:
        path = folder / place / f"diffusers{ending}"
        path.write_text("raise SystemExit('ran foreign code')")
        assert f"brings code along ({str(path.relative_to(folder))!r}); remove" in said_of(folder)
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


# Keys


@pytest.mark.parametrize("file", CONFIGURATIONS)
def test_a_key_that_could_load_code_or_a_file_is_named(folder: Path, file: str) -> None:
    plain = (folder / file).read_text()
    for key, value in HOSTILE:
        change_json(folder / file, **{key: value})
        assert f"has the key {key!r} in {file}, which could load code" in said_of(folder)
        (folder / file).write_text(plain)


def test_a_key_of_an_unrelated_release_is_taken_where_it_is_a_number(folder: Path) -> None:
    plain = {"new": 1, "newer": [0.5, [1]], "newest": None, "empty": {}, "_flag_autoset": True}
    for file in CONFIGURATIONS:
        change_json(folder / file, **plain, **dict.fromkeys(FLAGS, False), auto_map=None)
    load(folder)


def test_the_keys_of_published_pipelines_are_taken() -> None:
    """As they stand in the files of SD 1.5, SDXL, SD 3, Flux and CogVideoX on the hub."""
    token = {"__type": "AddedToken", "content": "<|endoftext|>", "lstrip": False}
    content = {
        **{"_class_name": "X", "_diffusers_version": "0.6.0", "_name_or_path": "openai/clip"},
        **{"architectures": ["CLIPTextModel"], "torch_dtype": "float32", "model_type": "t5"},
        **{"hidden_act": "quick_gelu", "dense_act_fn": "gelu_new", "transformers_version": "4.2"},
        **{"feed_forward_proj": "gated-gelu", "id2label": {"0": "LABEL_0"}, "eos_token": token},
        **{"special_tokens_map_file": "./special_tokens_map.json", "tokenizer_class": "X"},
        **{"added_tokens_decoder": {"0": token}, "additional_special_tokens": ["<extra_id_0>"]},
        **{"down_block_types": ["DownBlock2D"], "qk_norm": "rms_norm", "norm_type": "layer_norm"},
        **{"sp_model_kwargs": {}, "errors": "replace", "name_or_path": "openai/clip"},
        **{"prediction_type": "epsilon", "algorithm_type": "dpmsolver++", "trained_betas": None},
    }
    check_keys("config.json", content)
    with pytest.raises(UnfitFolderError, match="'other' in config"):
        check_keys("config.json", {**content, "other": "text"})


# Classes


def test_a_scheduler_is_one_of_the_known_classes(folder: Path) -> None:
    names = "StableDiffusionPipeline FlaxDDIMScheduler OnnxRuntimeModel AutoModel"
    names += " UNet2DConditionModel FlashPackDDIMScheduler schedulers __class__"
    entries: list[Any] = [["diffusers", name] for name in names.split()]
    entries += [["diffusers", ["DDIMScheduler"]], ["diffusers", "DDIMScheduler", "more"]]
    entries += [["diffusers"], ["mine", "DDIMScheduler"], ["os", "system"]]
    for entry in entries:
        change_json(folder / INDEX, scheduler=entry)
        assert f"as scheduler, not a known scheduler of diffusers, in {INDEX}" in said_of(folder)


@pytest.mark.parametrize(
    ("file", "key"),
    [
        ("scheduler/scheduler_config.json", "_class_name"),
        ("unet/config.json", "_class_name"),
        ("tokenizer/tokenizer_config.json", "tokenizer_class"),
    ],
)
def test_a_configuration_of_another_class_is_refused(folder: Path, file: str, key: str) -> None:
    for other in ("StableDiffusionPipeline", "Mine"):
        change_json(folder / file, **{key: other})
        assert f"has {other!r} as {key} in {file}" in said_of(folder)


@pytest.mark.parametrize("name", ["safety_checker", "image_encoder", "feature_extractor"])
def test_a_component_that_is_not_loaded_is_of_a_known_library_all_the_same(
    folder: Path, name: str
) -> None:
    for foreign in (["mine", "Mine"], "mine", [["mine"], "Mine"], {"mine": 1}):
        change_json(folder / INDEX, **{name: foreign})
        assert f"as {name} in {INDEX}, which is of a foreign lib" in said_of(folder)
    for plain in ([None, None], None, ["transformers", "CLIPImageProcessor"]):
        change_json(folder / INDEX, **{name: plain})
        load(folder)
