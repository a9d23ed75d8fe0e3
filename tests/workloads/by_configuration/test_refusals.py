"""How a folder of configurations can be unfit, each said in one sentence.

Its files and keys are checked as those of weights are: `tests/workloads/test_plain_folder.py`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from fixtures.workloads import hub
from fixtures.workloads.base import WorkloadError
from fixtures.workloads.by_configuration.workload import workload_of_folder
from tests.support.configurations import write_pipeline

INDEX = "model_index.json"


def refusal(folder: Path | str) -> str:
    """What is said when the workload is made or its pipeline loaded: one sentence with a remedy."""
    with pytest.raises(WorkloadError) as refused:
        workload_of_folder(str(folder)).by_configuration.load(torch.float32)
    sentence = str(refused.value)
    assert "\n" not in sentence
    assert "; " in sentence
    return sentence


def change(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_a_class_of_another_release_is_named_with_both_releases(folder: Path) -> None:
    change(folder / INDEX, _class_name="PipelineOfTomorrow", _diffusers_version="9.1.0")
    sentence = refusal(folder)
    assert "holds 'PipelineOfTomorrow' of diffusers 9.1.0, which diffusers 0." in sentence
    assert "install a diffusers that has it" in sentence


@pytest.mark.parametrize("name", ["UNet2DModel", "DDIMScheduler"])
def test_a_class_that_is_no_pipeline_is_refused(folder: Path, name: str) -> None:
    change(folder / INDEX, _class_name=name)
    assert f"holds {name!r}, which is not a pipeline of diffusers" in refusal(folder)


def test_a_component_that_the_libraries_do_not_have_is_named(folder: Path) -> None:
    change(folder / INDEX, transformer=["diffusers", "TransformerOfTomorrow"])
    assert "needs 'TransformerOfTomorrow' as transformer, which diffusers 0." in refusal(folder)


@pytest.mark.skipif(find_spec("torchsde") is not None, reason="it is installed here")
def test_a_component_whose_packages_are_missing_names_them(folder: Path) -> None:
    change(folder / INDEX, scheduler=["diffusers", "CosineDPMSolverMultistepScheduler"])
    assert "needs torchsde for its class 'CosineDPM" in refusal(folder)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (["os", "system"], "is of a foreign library"),
        (["mine", "Mine"], "is of a foreign library"),
        (["a.b", "Mine"], "is of a foreign library"),
        (["transformers", "AutoModel"], "is not a model, scheduler, tokenizer or processor"),
        (["transformers", "pipeline"], "does not have"),
        (["diffusers", "DiffusionPipeline"], "is not a model"),
        (["diffusers", 3], "is not a class"),
        ("diffusers", "is not a class"),
    ],
)
def test_a_component_of_anything_else_is_refused(folder: Path, entry: Any, said: str) -> None:
    change(folder / INDEX, transformer=entry)
    assert said in refusal(folder)


def test_a_component_that_the_pipeline_needs_is_named(folder: Path) -> None:
    change(folder / INDEX, vae=[None, None])
    assert "has no vae in model_index.json, which a PixArtAlphaPipeline needs" in refusal(folder)
    change(folder / INDEX, vae=["diffusers", "AutoencoderKL"])
    shutil.rmtree(folder / "vae")
    assert "has no folder vae/" in refusal(folder)


def _module(folder: Path) -> None:
    (folder / "transformer" / "mine.py").write_text("raise SystemExit('ran foreign code')")


def _auto_map(folder: Path) -> None:
    change(folder / "text_encoder" / "config.json", auto_map={"AutoModel": "mine--code.Mine"})


def _tokenizer_file(folder: Path) -> None:
    change(folder / "tokenizer" / "tokenizer_config.json", vocab_file="/etc/passwd")


@pytest.mark.parametrize(
    ("bring", "said"),
    [
        (_module, "brings code along"),
        (_auto_map, "has the key 'auto_map' in text_encoder/config.json"),
        (_tokenizer_file, "has the key 'vocab_file' in tokenizer/tokenizer_config.json"),
    ],
)
def test_what_leads_to_code_or_other_files_is_refused(
    folder: Path, bring: Callable[[Path], None], said: str
) -> None:
    bring(folder)
    assert said in refusal(folder)


def test_no_kernel_of_a_repository_is_taken(folder: Path) -> None:
    """Without the key transformers takes its own implementation."""
    change(folder / "text_encoder" / "config.json", _attn_implementation="mine/kernel")
    pipeline = workload_of_folder(str(folder)).by_configuration.load(torch.float32)
    assert pipeline.text_encoder.config._attn_implementation in (None, "eager", "sdpa")


def test_quantized_weights_are_refused(folder: Path) -> None:
    quantized = {"quant_method": "bitsandbytes", "load_in_4bit": True}
    change(folder / "transformer" / "config.json", quantization_config=quantized)
    assert "is quantized (quantization_config in transformer/config.json)" in refusal(folder)


def test_a_tokenizer_without_a_vocabulary_is_refused(folder: Path) -> None:
    (folder / "tokenizer" / "tokenizer.json").unlink()
    assert "has no vocabulary in tokenizer/, for which it needs tokenizer.json" in refusal(folder)


@pytest.mark.parametrize("content", ["", "{", "[]"])
def test_an_unreadable_configuration_is_refused(folder: Path, content: str) -> None:
    (folder / "transformer" / "config.json").write_text(content)
    assert "has an unreadable transformer/config.json" in refusal(folder)


def test_a_missing_argument_is_named(tmp_path: Path) -> None:
    folder = write_pipeline("StableDiffusionInpaintPipeline", tmp_path / "pipeline")
    change(folder / INDEX, _class_name="LEditsPPPipelineStableDiffusion")
    assert "which has no default for num_inference_steps" in refusal(folder)
    shutil.copytree(folder / "vae", folder / "movq")
    parts = {part: json.loads((folder / INDEX).read_text())[part] for part in ("unet", "scheduler")}
    index = {"_class_name": "KandinskyV22Pipeline", "movq": ["diffusers", "AutoencoderKL"], **parts}
    (folder / INDEX).write_text(json.dumps(index))
    assert "whose call needs 'image_embeds', which is not known" in refusal(folder)


def test_a_pipeline_without_a_denoiser_is_refused(tmp_path: Path) -> None:
    folder = write_pipeline("LTXPipeline", tmp_path / "pipeline")
    parts = {
        "vae": ["diffusers", "AutoencoderKLLTXVideo"],
        "latent_upsampler": ["ltx", "LTXLatentUpsamplerModel"],
    }
    index = {"_class_name": "LTXLatentUpsamplePipeline", **parts}
    (folder / INDEX).write_text(json.dumps(index))
    (folder / "latent_upsampler").mkdir()
    assert "which has no unet, transformer or prior" in refusal(folder)


def test_the_values_of_weights_are_refused(folder: Path) -> None:
    with pytest.raises(WorkloadError) as refused:
        workload_of_folder(str(folder)).load(torch.float32)
    assert "holds a PixArtAlphaPipeline, for which the suite has no workload" in str(refused.value)
    assert "run it with --perf-device simulated" in str(refused.value)


def test_what_a_module_did_not_import_is_named() -> None:
    """OmniGen's pipeline names a class that it imports only where torchvision is installed."""
    said = r"needs what is not installed \(NameError: name 'A'"
    with pytest.raises(WorkloadError, match=said), hub.refused("mine"):
        raise NameError("name 'A' is not defined")
