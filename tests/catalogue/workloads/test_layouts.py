"""Pipelines of each class from folders draw the same images, from shards and other releases, too.

What a folder is refused for: `test_plain_folder.py`.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import T5TokenizerFast

from fixtures.catalogue.workloads import WORKLOADS, Workload, loading
from fixtures.catalogue.workloads.composition import Composition, Kind
from fixtures.catalogue.workloads.random_weights import kept_in_fp32
from fixtures.catalogue.workloads.twins import SMALL
from fixtures.devices.torch_settings import one_thread
from tests.catalogue.workloads.refusing import INDEX, change_json
from tests.catalogue.workloads.refusing import refusal as refusal_of
from tests.support.small_workloads import BY_DEFAULT, small_workload

pytestmark = [
    # Schedulers of diffusers turn tensors into arrays in a way that numpy 2 deprecates.
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:`upcast_vae` is deprecated:FutureWarning"),
]

T5 = {"sd3": "text_encoder_3", "flux": "text_encoder_2", "cogvideox-5b": "text_encoder"}
"""By workload: the component that is a T5."""


def classes(name: str, kind: Kind) -> dict[str, type[Any]]:
    """The classes of a workload's components of one kind, by component."""
    components = Composition.of(SMALL[name].index).components
    return {component: cls for component, (of, cls) in components.items() if of == kind}


def read_again(tokenizer: Any) -> Any:
    """As its file gives it: transformers 5 takes the splitting from the class of a T5's."""
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        return T5TokenizerFast.from_pretrained(folder)


@cache
def small_pipeline(name: str, dtype: torch.dtype = torch.float32) -> Any:
    """A small copy whose tokenizers come back from their files.

    Its denoiser and one encoder have other weights than a source would draw for them.
    """
    pipeline = SMALL[name]("", dtype)
    if name in T5:
        tokenizer = T5[name].replace("text_encoder", "tokenizer")
        pipeline.register_modules(**{tokenizer: read_again(getattr(pipeline, tokenizer))})
    for component in sharded(name):
        for weight in getattr(pipeline, component).parameters():
            weight.mul_(1.5)
    return pipeline


def sharded(name: str) -> tuple[str, str]:
    """The components that large pipelines keep in shards: an encoder and the denoiser."""
    encoder = "text_encoder" if name == "sd15" else T5.get(name, "text_encoder_2")
    return encoder, "unet" if name in ("sd15", "sdxl") else "transformer"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Saves a small pipeline at the first call for its name."""
    root = tmp_path_factory.mktemp("pipelines")

    def folder(name: str) -> Path:
        if not (root / name).is_dir():
            pipeline = small_pipeline(name)
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
    return refusal_of(lambda: on_weights(name, weights).load(torch.float32))


# What comes back


def settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Those that are plain values, and public."""
    plain = (bool, int, float, str, type(None))
    return {
        key: value
        for key, value in values.items()
        if isinstance(value, plain) and not key.startswith("_")
    }


@pytest.mark.parametrize("name", BY_DEFAULT)
def test_a_loaded_pipeline_has_the_settings_of_the_saved_one_and_draws_what_it_draws(
    name: str, saved: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Constructing a watermark needs the package, which is not there.
    module = "diffusers.pipelines.stable_diffusion_xl.pipeline_stable_diffusion_xl"
    monkeypatch.setattr(f"{module}.is_invisible_watermark_available", lambda: True)
    workload, wanted = on_weights(name, saved(name)), small_pipeline(name)
    pipeline = workload.load(torch.float32)
    assert settings(vars(pipeline)) == settings(vars(wanted)) != {}
    assert settings(pipeline.config) == settings(wanted.config)
    assert settings(pipeline.scheduler.config) == settings(wanted.scheduler.config) != {}
    with one_thread():
        images = workload.draw(wanted, steps=1)
        assert np.array_equal(workload.draw(pipeline, steps=1), images)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", BY_DEFAULT)
def test_weights_come_back_in_the_precision_that_random_ones_have(
    name: str, dtype: torch.dtype, saved: Callable[[str], Path]
) -> None:
    pipeline, wanted = on_weights(name, saved(name)).load(dtype), SMALL[name]("", dtype)
    for component in classes(name, "model"):
        model = getattr(pipeline, component)
        loaded, drawn = model.state_dict(), getattr(wanted, component).state_dict()
        stored = getattr(small_pipeline(name), component).state_dict()
        assert loaded.keys() == drawn.keys()
        for key, tensor in drawn.items():
            assert loaded[key].dtype == tensor.dtype, key
            assert torch.equal(loaded[key], stored[key].to(tensor.dtype)), key
        assert not model.training
        assert not any(weight.requires_grad for weight in model.parameters())
    if name in T5:
        encoder = getattr(pipeline, T5[name])
        assert bool(kept_in_fp32(encoder, dtype)) == (dtype is torch.float16)


def test_a_workload_takes_its_own_scheduler_along(damaged: Callable[[str], Path]) -> None:
    folder, stored = damaged("sdxl"), "EulerAncestralDiscreteScheduler"
    change_json(folder / INDEX, scheduler=["diffusers", stored])
    change_json(folder / "scheduler/scheduler_config.json", _class_name=stored)
    pipeline = on_weights("sdxl", folder).load(torch.float32)
    assert type(pipeline.scheduler) is type(small_pipeline("sdxl").scheduler)


def test_text_encoders_of_transformers_5_have_their_weights_in_transformers_4(
    damaged: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their names lack what the model here wants in front; transformers 4 would draw them."""
    version, real = {"transformers": "4.57.1"}, metadata.version
    if real("transformers") >= "5":
        monkeypatch.setattr(metadata, "version", lambda name: version.get(name) or real(name))
    folder = damaged("sd3")
    path = folder / "text_encoder/model.safetensors"
    weights = load_file(path)
    short = {name.removeprefix("text_model."): tensor for name, tensor in weights.items()}
    assert short.keys() != weights.keys()
    save_file(short, path, metadata={"format": "pt"})
    encoder = on_weights("sd3", folder).load(torch.float16).text_encoder
    for name, tensor in encoder.named_parameters():
        assert torch.equal(tensor, weights[name].half()), name


def test_a_tied_weight_may_be_stored_by_either_name(damaged: Callable[[str], Path]) -> None:
    folder = damaged("flux") / "text_encoder_2"
    for path in folder.glob("*.safetensors*"):
        path.unlink()
    weights = small_pipeline("flux").text_encoder_2.state_dict()
    shared = weights.pop("shared.weight")
    assert "encoder.embed_tokens.weight" in weights
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    loaded = on_weights("flux", folder.parent).load(torch.float32).text_encoder_2
    for tied in (loaded.shared.weight, loaded.encoder.embed_tokens.weight):
        assert torch.equal(tied, shared)

    del weights["encoder.embed_tokens.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    assert "lacks text_encoder_2." in refusal("flux", folder.parent)


@pytest.mark.parametrize("name", ["sdxl", "flux"])
def test_transformers_4_reads_the_tokenizers_that_transformers_5_wrote(
    name: str, saved: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    version, real = {"transformers": "4.57.1"}, metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: version.get(name) or real(name))
    folder, parts = saved(name), classes(name, "tokenizer")
    for key, cls in parts.items():
        loaded = loading._tokenizer(folder / key, cls)
        assert (
            loaded("a horse").input_ids == getattr(small_pipeline(name), key)("a horse").input_ids
        )

    def class_called(name: str) -> Any:
        return SimpleNamespace(
            __name__=name,
            vocab_files_names={"vocab_file": "vocab.json"},
            from_pretrained=lambda folder, **settings: (name, settings),
        )

    monkeypatch.setattr("transformers.MineFast", class_called("MineFast"), raising=False)
    plain = {"local_files_only": True}
    for key in parts:
        stored = (folder / key / "tokenizer.json").is_file()
        four = ("MineFast", {**plain, "extra_special_tokens": {}}) if stored else ("Mine", plain)
        for release, expected in (("4.57.1", four), ("5.0.0", ("Mine", plain))):
            version["transformers"] = release
            assert loading._tokenizer(folder / key, class_called("Mine")) == expected
