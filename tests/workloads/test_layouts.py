"""SDXL, SD3, Flux and CogVideoX from folders: the same images, and every way to be refused."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import diffusers
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import T5TokenizerFast

from fixtures.devices.global_state import one_thread
from fixtures.workloads import WORKLOADS, Workload, WorkloadError, stored_tokenizer
from fixtures.workloads.byte_tokenizer import T5_SPECIAL
from fixtures.workloads.layouts import Layout
from fixtures.workloads.pipeline_folder import fill_renamed
from fixtures.workloads.random_weights import kept_in_fp32
from tests.support.small_workloads import SMALL, small_workload

pytestmark = [
    # Schedulers of diffusers turn tensors into arrays in a way that numpy 2 deprecates.
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:`upcast_vae` is deprecated:FutureWarning"),
]

LAYOUTS: dict[str, Layout] = {
    name: source.layout for name, source in SMALL.items() if name != "sd15"
}
"""Those of Stable Diffusion 1.5 are in `test_loading.py`."""
T5 = {"sd3": "text_encoder_3", "flux": "text_encoder_2", "cogvideox-5b": "text_encoder"}
"""By workload: the component that is a T5."""
COMPONENTS = [
    (name, component)
    for name, layout in LAYOUTS.items()
    for component in (*layout.models, *layout.tokenizers)
]
MODELS = [case for case in COMPONENTS if "tokenizer" not in case[1]]
SHARDED = [("flux", "text_encoder_2"), ("flux", "transformer")]
"""A model of transformers and one of diffusers."""


@pytest.fixture(autouse=True)
def on_one_thread() -> Iterator[None]:
    with one_thread():
        yield


def t5_tokenizer(max_length: int) -> Any:
    """Letter by letter, split at spaces as the published one is.

    The byte tokenizer does not come back from its file: transformers 5 takes the splitting from
    the class.
    """
    pad, end, unknown = T5_SPECIAL
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ,."
    pieces = [(token, 0.0) for token in T5_SPECIAL]
    pieces += [(letter, -2.0) for letter in ("▁", *letters)]
    model = Tokenizer(models.Unigram(pieces, unk_id=T5_SPECIAL.index(unknown)))
    model.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    model.decoder = decoders.Metaspace()
    model.post_processor = processors.TemplateProcessing(
        single=["$A", end], special_tokens=[(end, T5_SPECIAL.index(end))]
    )
    return T5TokenizerFast(
        tokenizer_object=model,
        pad_token=pad,
        eos_token=end,
        unk_token=unknown,
        extra_ids=0,
        model_max_length=max_length,
    )


def small_pipeline(name: str, dtype: torch.dtype) -> Any:
    """A small copy whose tokenizers come back from their files."""
    pipeline = SMALL[name]("", dtype)
    if name in T5:
        tokenizer = T5[name].replace("text_encoder", "tokenizer")
        length = getattr(pipeline, tokenizer).model_max_length
        pipeline.register_modules(**{tokenizer: t5_tokenizer(length)})
    return pipeline


def sharded(name: str) -> tuple[str, str]:
    """The components that large pipelines keep in shards: an encoder and the denoiser."""
    return T5.get(name, "text_encoder_2"), "unet" if name == "sdxl" else "transformer"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Saves a small pipeline at the first call for its name."""
    root = tmp_path_factory.mktemp("pipelines")

    def folder(name: str) -> Path:
        if not (root / name).is_dir():
            pipeline = small_pipeline(name, torch.float32)
            pipeline.save_pretrained(root / name, safe_serialization=True)
            for component in sharded(name):
                shutil.rmtree(root / name / component)
                getattr(pipeline, component).save_pretrained(
                    root / name / component, max_shard_size="20KB", safe_serialization=True
                )
                assert len([*(root / name / component).glob("*-of-*.safetensors")]) > 1
        return root / name

    return folder


@pytest.fixture
def damaged(saved: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """Gives copies to be damaged."""

    def folder(name: str) -> Path:
        return Path(shutil.copytree(saved(name), tmp_path / name))

    return folder


def on_weights(name: str, weights: str | Path) -> Workload:
    """The real workload on other weights, with the call of a small copy."""
    return replace(WORKLOADS[name].with_weights(str(weights)), call=small_workload(name).call)


def refusal(name: str, weights: str | Path) -> str:
    """What loading says, which must be one sentence with a remedy."""
    with pytest.raises(WorkloadError) as refused:
        on_weights(name, weights).load(torch.float32)
    sentence = str(refused.value)
    assert "\n" not in sentence
    assert "; " in sentence
    return sentence


def change_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def drop_weight(folder: Path) -> str:
    """Take a weight out of the file that holds it, and not out of the index of shards."""
    path = max(folder.glob("*.safetensors"))
    weights = load_file(path)
    name: str = max(name for name in weights if name.endswith(".weight"))
    del weights[name]
    save_file(weights, path, metadata={"format": "pt"})
    return name


# What comes back


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_loaded_pipeline_draws_what_the_saved_one_draws(
    name: str, saved: Callable[[str], Path]
) -> None:
    workload = on_weights(name, saved(name))
    images = workload.draw(small_pipeline(name, torch.float32))
    assert np.array_equal(workload.draw(workload.load(torch.float32)), images)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_loaded_pipeline_draws_with_the_weights_of_its_files(
    name: str, damaged: Callable[[str], Path]
) -> None:
    folder = damaged(name)
    workload = on_weights(name, folder)
    images = workload.draw(workload.load(torch.float32))
    for component in sharded(name):
        path = min((folder / component).glob("*.safetensors"))
        weights = {key: tensor * 1.5 for key, tensor in load_file(path).items()}
        save_file(weights, path, metadata={"format": "pt"})
        changed = on_weights(name, folder)
        others = changed.draw(changed.load(torch.float32))
        assert not np.array_equal(others, images), component
        images = others


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", LAYOUTS)
def test_weights_come_back_in_the_precision_that_random_ones_have(
    name: str, dtype: torch.dtype, saved: Callable[[str], Path]
) -> None:
    pipeline, wanted = on_weights(name, saved(name)).load(dtype), small_pipeline(name, dtype)
    for component in LAYOUTS[name].models:
        model = getattr(pipeline, component)
        found, expected = model.state_dict(), getattr(wanted, component).state_dict()
        assert found.keys() == expected.keys()
        for key, tensor in expected.items():
            assert found[key].dtype == tensor.dtype, key
            assert torch.equal(found[key], tensor), key
        assert not model.training
        assert not any(weight.requires_grad for weight in model.parameters())
    if name in T5:
        encoder = getattr(pipeline, T5[name])
        assert bool(kept_in_fp32(encoder, dtype)) == (dtype is torch.float16)


@pytest.mark.parametrize("name", LAYOUTS)
def test_settings_are_those_of_the_random_pipeline(
    name: str, saved: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Constructing a watermark needs the package, which is not there.
    module = "diffusers.pipelines.stable_diffusion_xl.pipeline_stable_diffusion_xl"
    monkeypatch.setattr(f"{module}.is_invisible_watermark_available", lambda: True)
    pipeline = on_weights(name, saved(name)).load(torch.float32)
    wanted = small_pipeline(name, torch.float32)

    def settings(values: Mapping[str, Any]) -> dict[str, Any]:
        plain = (bool, int, float, str, type(None))
        found = {key: value for key, value in values.items() if isinstance(value, plain)}
        return {key: value for key, value in found.items() if not key.startswith("_")}

    assert settings(vars(pipeline)) == settings(vars(wanted))
    assert settings(pipeline.config) == settings(wanted.config)
    assert settings(pipeline.scheduler.config) == settings(wanted.scheduler.config)
    assert settings(vars(wanted))
    assert settings(wanted.scheduler.config)


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("sdxl", "EulerAncestralDiscreteScheduler"),
        ("sd3", "FlowMatchHeunDiscreteScheduler"),
        ("flux", "FlowMatchHeunDiscreteScheduler"),
        ("cogvideox-5b", "CogVideoXDPMScheduler"),
    ],
)
def test_a_workload_takes_its_own_scheduler_along(
    name: str, stored: str, damaged: Callable[[str], Path]
) -> None:
    folder = damaged(name)
    change_json(folder / "model_index.json", scheduler=["diffusers", stored])
    change_json(folder / "scheduler/scheduler_config.json", _class_name=stored)
    workload = on_weights(name, folder)
    pipeline = workload.load(torch.float32)
    assert type(pipeline.scheduler) is type(SMALL[name]("", torch.float32).scheduler)
    assert np.isfinite(workload.draw(pipeline, steps=2)).all()


@pytest.mark.parametrize("name", ["sdxl", "sd3", "flux"])
def test_components_that_no_call_needs_are_neither_loaded_nor_missed(
    name: str, damaged: Callable[[str], Path]
) -> None:
    folder = damaged(name)
    (folder / "image_encoder").mkdir()
    (folder / "image_encoder/pytorch_model.bin").write_bytes(b"pickled")
    kind = ["transformers", "CLIPVisionModelWithProjection"]
    change_json(folder / "model_index.json", image_encoder=kind)
    pipeline = on_weights(name, folder).load(torch.float32)
    assert pipeline.components.get("image_encoder") is None


def test_a_hub_id_is_asked_for_by_the_class_of_the_workload(
    saved: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def download(hub_id: str, **kwargs: Any) -> str:
        asked.update(kwargs, hub_id=hub_id)
        return str(saved("sdxl"))

    monkeypatch.setattr(diffusers.StableDiffusionXLPipeline, "download", download)
    on_weights("sdxl", "owner/name").load(torch.float32)
    assert asked == {
        **{"hub_id": "owner/name", "use_safetensors": True, "trust_remote_code": False},
        **{"image_encoder": None, "feature_extractor": None},
    }


def test_text_encoders_of_transformers_5_have_their_weights_in_transformers_4(
    damaged: Callable[[str], Path],
) -> None:
    """Their names lack what the model here wants in front; transformers 4 would draw them."""
    folder = damaged("sd3")
    path = folder / "text_encoder/model.safetensors"
    weights = load_file(path)
    short = {name.removeprefix("text_model."): tensor for name, tensor in weights.items()}
    assert short.keys() != weights.keys()
    save_file(short, path, metadata={"format": "pt"})
    pipeline = on_weights("sd3", folder).load(torch.float16)
    projection = pipeline.text_encoder.text_projection.weight
    for weight in pipeline.text_encoder.parameters():
        weight.zero_()
    fill_renamed(pipeline, folder, LAYOUTS["sd3"])
    for name, tensor in pipeline.text_encoder.named_parameters():
        if tensor is not projection:  # the same by either name
            assert torch.equal(tensor, weights[name].half()), name
    assert {tensor.dtype for tensor in pipeline.text_encoder.parameters()} == {torch.float16}
    name = "final_layer_norm.weight"
    save_file({**short, name: short[name][:1]}, path, metadata={"format": "pt"})
    with pytest.raises(RuntimeError, match="size mismatch"):
        fill_renamed(pipeline, folder, LAYOUTS["sd3"])


# T5


@pytest.mark.parametrize("name", T5)
def test_a_tied_weight_may_be_stored_by_either_name(
    name: str, damaged: Callable[[str], Path]
) -> None:
    folder = damaged(name) / T5[name]
    encoder = getattr(small_pipeline(name, torch.float32), T5[name])
    for path in folder.glob("*.safetensors*"):
        path.unlink()
    weights = encoder.state_dict()
    del weights["shared.weight"]
    assert "encoder.embed_tokens.weight" in weights
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    loaded = getattr(on_weights(name, folder.parent).load(torch.float32), T5[name])
    for tied in (loaded.shared.weight, loaded.encoder.embed_tokens.weight):
        assert torch.equal(tied, encoder.shared.weight)

    del weights["encoder.embed_tokens.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    assert f"lacks {T5[name]}.shared.weight" in refusal(name, folder.parent)


@pytest.mark.parametrize("name", LAYOUTS)
def test_transformers_4_reads_the_tokenizers_that_transformers_5_wrote(
    name: str, saved: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    version, real = {"transformers": "4.57.1"}, metadata.version
    monkeypatch.setattr(metadata, "version", lambda one: version.get(one) or real(one))
    folder, layout = saved(name), LAYOUTS[name]
    workload = on_weights(name, folder)
    images = workload.draw(small_pipeline(name, torch.float32))
    assert np.array_equal(workload.draw(workload.load(torch.float32)), images)

    def class_called(name: str) -> Any:
        return SimpleNamespace(from_pretrained=lambda folder, **settings: (name, settings))

    names = {one for part in layout.tokenizers.values() for one in part.classes}
    library = SimpleNamespace(**{one: class_called(one) for one in names})
    monkeypatch.setattr(stored_tokenizer, "import_module", {"transformers": library}.__getitem__)
    plain = {"local_files_only": True}
    for key, part in layout.tokenizers.items():
        slow, fast = part.classes
        stored = (folder / key / "tokenizer.json").is_file()
        four = (fast, {**plain, "extra_special_tokens": {}}) if stored else (slow, plain)
        version["transformers"] = "4.57.1"
        assert stored_tokenizer.load_tokenizer(folder / key, part, slow) == four
        version["transformers"] = "5.0.0"
        assert stored_tokenizer.load_tokenizer(folder / key, part, slow) == (slow, plain)


@pytest.mark.parametrize("name", T5)
def test_a_sentencepiece_vocabulary_says_what_it_needs(
    name: str, damaged: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = damaged(name)
    tokenizer = T5[name].replace("text_encoder", "tokenizer")
    (folder / tokenizer / "spiece.model").write_bytes(b"")
    on_weights(name, folder).load(torch.float32)  # tokenizer.json is enough

    (folder / tokenizer / "tokenizer.json").unlink()
    monkeypatch.setattr("transformers.utils.is_sentencepiece_available", lambda: False)
    sentence = refusal(name, folder)
    assert f"needs sentencepiece and protobuf for {tokenizer}/spiece.model" in sentence
    assert "run `pip install sentencepiece protobuf`" in sentence


# What is refused


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_pipeline_of_another_workload_is_named(
    name: str, saved: Callable[[str], Path], tmp_path: Path
) -> None:
    other = "flux" if name != "flux" else "sdxl"
    sentence = refusal(name, saved(other))
    assert f"holds '{LAYOUTS[other].pipeline}', not a {LAYOUTS[name].pipeline}; " in sentence
    assert "it has no model_index.json" in refusal(name, tmp_path)


@pytest.mark.parametrize(("name", "component"), COMPONENTS)
def test_a_component_of_a_foreign_class_is_named(
    name: str, component: str, damaged: Callable[[str], Path]
) -> None:
    folder = damaged(name)
    for foreign in (["mine", "Mine"], ["transformers", "AutoModel"], [None, None], "Mine", None):
        change_json(folder / "model_index.json", **{component: foreign})
        assert f"as {component}, not " in refusal(name, folder)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_scheduler_of_another_library_is_refused(
    name: str, damaged: Callable[[str], Path]
) -> None:
    folder = damaged(name)
    for foreign in (["mine", "Mine"], ["transformers", "AutoModel"], [None, None], [], None):
        change_json(folder / "model_index.json", scheduler=foreign)
        assert "as scheduler, not a known scheduler of diffusers" in refusal(name, folder)


@pytest.mark.parametrize(("name", "component"), COMPONENTS)
def test_a_component_without_its_folder_is_named(
    name: str, component: str, damaged: Callable[[str], Path]
) -> None:
    folder = damaged(name)
    shutil.rmtree(folder / component)
    assert f"has no folder {component}/" in refusal(name, folder)


@pytest.mark.parametrize(("name", "component"), MODELS)
def test_weights_that_are_pickled_are_refused(
    name: str, component: str, damaged: Callable[[str], Path]
) -> None:
    folder = damaged(name) / component
    for path in [*folder.glob("*.safetensors*")]:
        if path.suffix == ".safetensors":
            torch.save(load_file(path), path.with_suffix(".bin"))
        path.unlink()
    (file, _) = LAYOUTS[name].models[component].files
    assert f"has no {component}/{file}, whole or in shards" in refusal(name, folder.parent)


@pytest.mark.parametrize(("name", "component"), MODELS)
def test_a_weight_that_no_file_holds_is_named(
    name: str, component: str, damaged: Callable[[str], Path]
) -> None:
    folder = damaged(name)
    weight = drop_weight(folder / component)
    # transformers 5 calls "encoder" what transformers 4 calls "text_model.encoder".
    wanted = rf"lacks {component}\.(text_model\.)?{re.escape(weight.removeprefix('text_model.'))};"
    assert re.search(wanted, refusal(name, folder))


# Shards


def index_of(folder: Path) -> Path:
    (path,) = folder.glob("*.safetensors.index.json")
    return path


@pytest.mark.parametrize(("name", "component"), SHARDED)
def test_a_shard_that_is_missing_is_named(
    name: str, component: str, damaged: Callable[[str], Path]
) -> None:
    folder = damaged(name)
    shard = max((folder / component).glob("*.safetensors"))
    shard.unlink()
    assert f"has no {component}/{shard.name}; copy or download" in refusal(name, folder)


@pytest.mark.parametrize("shard", ["pickled.bin", "../elsewhere.safetensors", "", 1, None])
@pytest.mark.parametrize(("name", "component"), SHARDED)
def test_an_index_of_shards_names_safetensors_files_beside_it_alone(
    name: str, component: str, shard: Any, damaged: Callable[[str], Path]
) -> None:
    folder = damaged(name)
    index = index_of(folder / component)
    weight_map = json.loads(index.read_text())["weight_map"]
    file = min(weight_map.values())
    weights = load_file(folder / component / file)
    torch.save(weights, folder / component / "pickled.bin")
    save_file(weights, folder / "elsewhere.safetensors", metadata={"format": "pt"})
    changed = {key: shard if value == file else value for key, value in weight_map.items()}
    change_json(index, weight_map=changed)
    sentence = refusal(name, folder)
    assert f"has {str(shard)!r} as a shard" in sentence
    assert f"which is no safetensors file in {component}/" in sentence


@pytest.mark.parametrize("weight_map", [None, [], "text"])
@pytest.mark.parametrize(("name", "component"), SHARDED)
def test_an_index_that_names_no_weights_is_refused(
    name: str, component: str, weight_map: Any, damaged: Callable[[str], Path]
) -> None:
    folder = damaged(name)
    index = index_of(folder / component)
    change_json(index, weight_map=weight_map)
    assert f"names no weights in {component}/{index.name}" in refusal(name, folder)
    index.write_text("{")
    assert f"has an unreadable {component}/{index.name}" in refusal(name, folder)


def test_a_whole_file_beside_shards_is_what_transformers_reads(
    damaged: Callable[[str], Path],
) -> None:
    folder = damaged("flux")
    encoder = folder / "text_encoder_2"
    weights: dict[str, torch.Tensor] = {}
    for shard in encoder.glob("*.safetensors"):
        weights |= load_file(shard)
    drop_weight(encoder)
    save_file(weights, encoder / "model.safetensors", metadata={"format": "pt"})
    on_weights("flux", folder).load(torch.float32)
    del weights["shared.weight"]  # which is in a shard
    save_file(weights, encoder / "model.safetensors", metadata={"format": "pt"})
    assert "lacks text_encoder_2.shared.weight" in refusal("flux", folder)


def test_shards_beside_a_whole_file_are_what_diffusers_reads(
    damaged: Callable[[str], Path],
) -> None:
    folder = damaged("flux")
    whole = folder / "transformer/diffusion_pytorch_model.safetensors"
    save_file({}, whole, metadata={"format": "pt"})
    on_weights("flux", folder).load(torch.float32)
    change_json(index_of(whole.parent), weight_map={"weight": "pickled.bin"})
    assert "has 'pickled.bin' as a shard" in refusal("flux", folder)


@pytest.mark.parametrize(("name", "component"), SHARDED)
def test_a_variant_alone_is_not_taken_for_the_weights(
    name: str, component: str, damaged: Callable[[str], Path]
) -> None:
    folder = damaged(name)
    file, index = LAYOUTS[name].models[component].files
    (folder / component / index).unlink()
    variant = file.replace(".safetensors", ".fp16.safetensors")
    min((folder / component).glob("*.safetensors")).rename(folder / component / variant)
    assert f"has no {component}/{file}, whole or in shards" in refusal(name, folder)


def test_a_configuration_that_names_other_weights_is_refused(
    damaged: Callable[[str], Path],
) -> None:
    folder = damaged("flux")
    weights = folder / "text_encoder/model.safetensors"
    torch.save(load_file(weights), weights.with_name("adapter_model.bin"))
    change_json(folder / "text_encoder/config.json", transformers_weights="adapter_model.bin")
    sentence = refusal("flux", folder)
    assert "has the key 'transformers_weights' in text_encoder/config.json" in sentence
