"""A folder of weights brings no code along, whatever its files and keys say."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from fixtures.workloads.base import WorkloadError
from fixtures.workloads.loading import load_pipeline
from fixtures.workloads.plain_folder import CODE, FLAGS, UnfitFolderError, check_keys
from fixtures.workloads.sd15 import DDIM

CONFIGURATIONS = [
    "unet/config.json",
    "vae/config.json",
    "text_encoder/config.json",
    "tokenizer/tokenizer_config.json",
    "scheduler/scheduler_config.json",
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


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.mark),)


def refusal(folder: Path) -> str:
    """What loading says, which must be one sentence with a remedy."""
    with pytest.raises(WorkloadError) as refused:
        load_pipeline(str(folder), torch.float32, DDIM.layout)
    sentence = str(refused.value)
    assert "\n" not in sentence
    assert "; " in sentence
    assert "cannot be loaded" not in sentence  # refused before any library looked at it
    return sentence


def change_json(path: Path, **changes: Any) -> None:
    content = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**content, **changes}))


# Files


@pytest.mark.parametrize("place", ["", "scheduler", "unet", "text_encoder", "more/below"])
def test_code_is_refused_wherever_it_lies(folder: Path, place: str) -> None:
    (folder / place).mkdir(parents=True, exist_ok=True)
    for ending in CODE:
        path = folder / place / f"diffusers{ending}"
        path.write_text("raise SystemExit('ran foreign code')")
        assert f"brings code along ({str(path.relative_to(folder))!r}); remove" in refusal(folder)
        path.unlink()


def test_a_module_of_a_library_s_name_is_not_run_though_it_looks_like_data(folder: Path) -> None:
    (folder / "scheduler/DIFFUSERS.PY").write_text("raise SystemExit('ran foreign code')")
    assert "brings code along" in refusal(folder)


@pytest.mark.parametrize("name", ["unet", "scheduler/scheduler_config.json", "more"])
def test_a_link_that_leads_out_of_the_folder_is_refused(
    folder: Path, tmp_path: Path, name: str
) -> None:
    path, elsewhere = folder / name, tmp_path / "elsewhere"
    elsewhere.mkdir()
    if path.exists():
        path = path.rename(elsewhere / "moved")
    (folder / name).symlink_to(path if path.exists() else elsewhere)
    assert f"has a link {name!r} that leads out of it" in refusal(folder)


def test_links_within_the_folder_and_into_the_hub_s_cache_are_followed(
    saved: Path, tmp_path: Path
) -> None:
    snapshot, blobs = tmp_path / "models--x/snapshots/abc", tmp_path / "models--x/blobs"
    shutil.copytree(saved, snapshot)
    blobs.mkdir()
    weights = snapshot / "unet/diffusion_pytorch_model.safetensors"
    weights.rename(blobs / "1234")
    weights.symlink_to("../../../blobs/1234")
    (snapshot / "vae").rename(snapshot / "other")
    (snapshot / "vae").symlink_to("other")
    load_pipeline(str(snapshot), torch.float32, DDIM.layout)
    (tmp_path / "link").symlink_to(snapshot)
    load_pipeline(str(tmp_path / "link"), torch.float32, DDIM.layout)


@pytest.mark.parametrize("target", ["nowhere", "unet/loop"])
def test_a_broken_link_is_refused(folder: Path, target: str) -> None:
    (folder / "unet/loop").symlink_to(folder / target)
    assert "has a broken link 'unet/loop'; copy or download" in refusal(folder)


@pytest.mark.parametrize("name", ["model_index.json", "scheduler/scheduler_config.json", "more"])
def test_a_pipe_is_not_waited_for(folder: Path, name: str) -> None:
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    wanted = "has no model_index.json" if name == "model_index.json" else "which is not a file"
    assert wanted in refusal(folder)


def test_a_configuration_of_adapters_is_refused(folder: Path) -> None:
    """With PEFT installed transformers would load the model that it names."""
    path = folder / "text_encoder/adapter_config.json"
    change_json(path, base_model_name_or_path="owner/other", peft_type="LORA")
    assert "has an unknown file text_encoder/adapter_config.json" in refusal(folder)


def test_pickled_weights_beside_the_safetensors_are_not_opened(folder: Path) -> None:
    mark = folder / "unpickled"
    trap = pickle.dumps(Trap(mark))
    for component in ("unet", "vae", "text_encoder", "scheduler", "tokenizer", ""):
        for name in ("diffusion_pytorch_model.bin", "pytorch_model.bin", "more.ckpt", "x.pt"):
            (folder / component / name).write_bytes(trap)
    load_pipeline(str(folder), torch.float32, DDIM.layout)
    assert not mark.exists()
    pickle.loads(trap)  # noqa: S301
    assert mark.exists()  # the trap works


# Keys


@pytest.mark.parametrize("file", [*CONFIGURATIONS, "model_index.json"])
def test_a_key_that_could_load_code_or_a_file_is_named(folder: Path, file: str) -> None:
    plain = (folder / file).read_text()
    for key, value in HOSTILE:
        change_json(folder / file, **{key: value})
        assert f"has the key {key!r} in {file}, which could load code" in refusal(folder)
        (folder / file).write_text(plain)


def test_a_key_of_an_unrelated_release_is_taken_where_it_is_a_number(folder: Path) -> None:
    plain = {"new": 1, "newer": [0.5, [1]], "newest": None, "empty": {}, "_flag_autoset": True}
    for file in (*CONFIGURATIONS, "model_index.json"):
        change_json(folder / file, **plain, **dict.fromkeys(FLAGS, False), auto_map=None)
    load_pipeline(str(folder), torch.float32, DDIM.layout)


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


@pytest.mark.parametrize(
    "scheduler",
    [
        ["diffusers", "StableDiffusionPipeline"],
        ["diffusers", "FlaxDDIMScheduler"],
        ["diffusers", "OnnxRuntimeModel"],
        ["diffusers", "AutoModel"],
        ["diffusers", "UNet2DConditionModel"],
        ["diffusers", "FlashPackDDIMScheduler"],
        ["diffusers", "schedulers"],
        ["diffusers", "__class__"],
        ["diffusers", ["DDIMScheduler"]],
        ["diffusers", "DDIMScheduler", "more"],
        ["diffusers"],
        ["mine", "DDIMScheduler"],
        ["os", "system"],
    ],
)
def test_a_scheduler_is_one_of_the_known_classes(folder: Path, scheduler: list[Any]) -> None:
    change_json(folder / "model_index.json", scheduler=scheduler)
    sentence = refusal(folder)
    assert "as scheduler, not a known scheduler of diffusers, in model_index.json" in sentence


@pytest.mark.parametrize(
    ("file", "key"),
    [
        ("scheduler/scheduler_config.json", "_class_name"),
        ("unet/config.json", "_class_name"),
        ("vae/config.json", "_class_name"),
        ("tokenizer/tokenizer_config.json", "tokenizer_class"),
    ],
)
def test_a_configuration_of_another_class_is_refused(folder: Path, file: str, key: str) -> None:
    for other in ("StableDiffusionPipeline", "Mine"):
        change_json(folder / file, **{key: other})
        assert f"has {other!r} as {key} in {file}" in refusal(folder)


@pytest.mark.parametrize("name", ["safety_checker", "image_encoder", "feature_extractor"])
def test_a_component_that_is_not_loaded_is_of_a_known_library_all_the_same(
    folder: Path, name: str
) -> None:
    for foreign in (["mine", "Mine"], "mine", [["mine"], "Mine"], {"mine": 1}):
        change_json(folder / "model_index.json", **{name: foreign})
        assert f"as {name} in model_index.json, which is of a foreign lib" in refusal(folder)
    for plain in ([None, None], None, ["transformers", "CLIPImageProcessor"]):
        change_json(folder / "model_index.json", **{name: plain})
        load_pipeline(str(folder), torch.float32, DDIM.layout)


def test_a_component_that_no_layout_has_is_refused(folder: Path) -> None:
    change_json(folder / "model_index.json", more=["mine", "Mine"])
    assert "has the key 'more' in model_index.json" in refusal(folder)
