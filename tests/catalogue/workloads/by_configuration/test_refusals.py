"""How a folder of configurations can be unfit, each said in one sentence.

Its files and keys are checked as those of weights are: `test_plain_folder.py`.
"""

from __future__ import annotations

import json
import shutil
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from fixtures.catalogue.workloads import WorkloadError, hub
from fixtures.catalogue.workloads.by_configuration.workload import workload_of_folder
from tests.catalogue.workloads.refusing import INDEX, Damage, change_json, changed, refusal, written
from tests.support.configurations import write_pipeline

CONFIG = "transformer/config.json"


def said_of(folder: Path) -> str:
    """What is said when the workload is made, or else when its pipeline is loaded."""
    return refusal(lambda: workload_of_folder(str(folder)).by_configuration.load(torch.float32))


def of_class(name: str) -> Damage:
    return changed(INDEX, _class_name=name)


def with_transformer(entry: Any) -> Damage:
    return changed(INDEX, transformer=entry)


REFUSED: list[tuple[Damage, str]] = [
    (of_class("PipelineOfTomorrow"), "has no PipelineOfTomorrow; install a release"),
    (of_class("UNet2DModel"), "holds 'UNet2DModel', which is not a pipeline of diffusers"),
    (
        with_transformer(["diffusers", "TransformerOfTomorrow"]),
        "has no TransformerOfTomorrow; install a release",
    ),
    (with_transformer(["a.b", "Mine"]), "is of a foreign library"),
    (
        with_transformer(["diffusers", "DiffusionPipeline"]),
        "is no model, scheduler, tokenizer or processor",
    ),
    (with_transformer("diffusers"), "is not a class"),
    (changed(INDEX, vae=[None, None]), f"has no vae in {INDEX}, which a PixArtAlphaPipeline needs"),
    (written(CONFIG, b"{"), f"has an unreadable {CONFIG}"),
    pytest.param(  # type: ignore[list-item]
        changed(INDEX, scheduler=["diffusers", "CosineDPMSolverMultistepScheduler"]),
        "requires the torchsde library",
        marks=pytest.mark.skipif(find_spec("torchsde") is not None, reason="it is installed here"),
    ),
]


@pytest.mark.parametrize(("damage", "says"), REFUSED)
def test_an_unfit_folder_is_refused(damage: Damage, says: str, folder: Path) -> None:
    damage(folder)
    assert says in said_of(folder)


def test_a_missing_argument_is_named(tmp_path: Path) -> None:
    folder = write_pipeline("StableDiffusionInpaintPipeline", tmp_path / "pipeline")
    change_json(folder / INDEX, _class_name="LEditsPPPipelineStableDiffusion")
    assert "which has no default for num_inference_steps" in said_of(folder)
    shutil.copytree(folder / "vae", folder / "movq")
    parts = {part: json.loads((folder / INDEX).read_text())[part] for part in ("unet", "scheduler")}
    index = {"_class_name": "KandinskyV22Pipeline", "movq": ["diffusers", "AutoencoderKL"], **parts}
    (folder / INDEX).write_text(json.dumps(index))
    assert "whose call needs 'image_embeds', which is not known" in said_of(folder)


def test_a_pipeline_without_a_denoiser_is_refused(tmp_path: Path) -> None:
    folder = write_pipeline("LTXPipeline", tmp_path / "pipeline")
    parts = {
        "vae": ["diffusers", "AutoencoderKLLTXVideo"],
        "latent_upsampler": ["ltx", "LTXLatentUpsamplerModel"],
    }
    (folder / INDEX).write_text(json.dumps({"_class_name": "LTXLatentUpsamplePipeline", **parts}))
    (folder / "latent_upsampler").mkdir()
    assert "which has no unet, transformer or prior" in said_of(folder)


def test_the_values_of_weights_are_refused(folder: Path) -> None:
    sentence = refusal(partial(workload_of_folder(str(folder)).load, torch.float32))
    assert "holds a PixArtAlphaPipeline, for which the suite has no workload" in sentence
    assert "run it with --perf-device simulated" in sentence


def test_what_a_module_did_not_import_is_named() -> None:
    """OmniGen's pipeline names a class that it imports only where torchvision is installed."""
    said = r"needs what is not installed \(NameError: name 'A'"
    with pytest.raises(WorkloadError, match=said), hub.refused("mine"):
        raise NameError("name 'A' is not defined")
