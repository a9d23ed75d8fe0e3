"""The call that is derived from a pipeline's signature and configurations."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import diffusers
import numpy
import pytest

from fixtures.catalogue.workloads.by_configuration.defaults import PROMPT, needed_inputs
from fixtures.catalogue.workloads.by_configuration.workload import (
    call_arguments,
    draw_with_defaults,
    workload_of_folder,
)
from fixtures.catalogue.workloads.calls import Call
from fixtures.catalogue.workloads.composition import call_parameters
from tests.support.configurations import write_pipeline

# What pipelines warn of concerns packages under test.
pytestmark = pytest.mark.filterwarnings("default")

MENDS_TEXTS = """
seen = []
class Pipeline:
    def __call__(self, prompt):
        seen.append(ftfy.fix_text(prompt))
        return ([],)
"""
CALL = Call(PROMPT, width=64, height=48, steps=10, guidance_scale=3.0, frames=5)


@pytest.mark.parametrize(
    ("name", "kind", "half", "sizes"),
    [
        # By its signature; by the denoiser's size; by a constant of the pipeline; a video's frames.
        ("AuraFlowPipeline", "transformer", "bfloat16", (1024, 1024, 1, 50, 3.5)),
        ("CogView3PlusPipeline", "transformer", "bfloat16", (16, 16, 1, 50, 5.0)),
        ("QwenImageImg2ImgPipeline", "transformer", "bfloat16", (512, 512, 1, 50, 0.0)),
        ("LTXPipeline", "video", "bfloat16", (704, 512, 161, 50, 3.0)),
        ("CogVideoXImageToVideoPipeline", "video", "bfloat16", (16, 16, 49, 50, 6.0)),
        ("CogVideoXVideoToVideoPipeline", "video", "bfloat16", (16, 16, 9, 50, 6.0)),
        ("LongCatAudioDiTPipeline", "transformer", "bfloat16", (0, 0, 1, 16, 4.0)),
        ("StableDiffusionImg2ImgPipeline", "single", "float16", (64, 64, 1, 50, 7.5)),
        ("DDIMPipeline", "transformer", "float16", (8, 8, 1, 50, 0.0)),
        ("StableVideoDiffusionPipeline", "video", "float16", (1024, 576, 25, 25, 0.0)),
    ],
)
def test_a_call_has_the_defaults_of_its_pipeline_and_components_decide_the_kind(
    name: str, kind: str, half: str, sizes: tuple[float, ...], tmp_path: Path
) -> None:
    workload = workload_of_folder(str(write_pipeline(name, tmp_path / "my pipeline")))
    call = workload.call
    assert (call.width, call.height, call.frames, call.steps, call.guidance_scale) == sizes
    assert (call.prompt, call.batch) == (PROMPT, 1)
    assert (workload.kind, workload.half, workload.name) == (kind, half, "my-pipeline")


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("Flux2Pipeline", set()),
        ("FluxKontextPipeline", {"image"}),
        ("FluxFillPipeline", {"image", "mask_image"}),
        ("FluxControlPipeline", {"control_image"}),
        ("StableDiffusionControlNetPipeline", {"image"}),
        ("StableDiffusionControlNetInpaintPipeline", {"image", "mask_image", "control_image"}),
        ("StableDiffusion3ControlNetInpaintingPipeline", {"control_image", "control_mask"}),
        ("WanVideoToVideoPipeline", {"video"}),
        ("WanAnimatePipeline", {"image", "pose_video", "face_video"}),
        ("Cosmos2VideoToWorldPipeline", {"image"}),
        ("IFInpaintingSuperResolutionPipeline", {"image", "original_image", "mask_image"}),
        ("StableDiffusionDepth2ImgPipeline", {"image"}),  # by its description alone
        ("QwenImageControlNetPipeline", {"control_image"}),
    ],
)
def test_what_a_class_needs_beside_its_prompt(name: str, inputs: set[str]) -> None:
    pipeline = getattr(diffusers, name)
    assert set(needed_inputs(pipeline, call_parameters(pipeline))) == inputs


def test_images_and_videos_to_change_are_of_the_call_s_size_and_the_same_every_time() -> None:
    first, again = (call_arguments(diffusers.FluxFillPipeline, CALL) for _ in range(2))
    assert first["image"].size == first["mask_image"].size == (64, 48)
    assert {*numpy.unique(numpy.asarray(first["mask_image"]))} == {0, 255}
    assert numpy.array_equal(numpy.asarray(first["image"]), numpy.asarray(again["image"]))
    video = call_arguments(diffusers.CogVideoXVideoToVideoPipeline, CALL)["video"]
    assert [frame.size for frame in video] == [(64, 48)] * 5
    assert not numpy.array_equal(numpy.asarray(video[0]), numpy.asarray(video[1]))


@pytest.mark.parametrize(
    "name", ["FluxImg2ImgPipeline", "StableDiffusionXLImg2ImgPipeline", "Kandinsky3Img2ImgPipeline"]
)
def test_as_many_steps_remain_as_the_call_has(name: str) -> None:
    """Such pipelines make the share `strength` of the steps they are asked for."""
    pipeline = getattr(diffusers, name)
    strength = call_parameters(pipeline)["strength"].default
    for steps in (1, 2, 3, 10, 28):
        asked = call_arguments(pipeline, replace(CALL, steps=steps))["num_inference_steps"]
        assert int(asked * strength) == steps


def test_a_batch_has_as_many_prompts_and_images() -> None:
    given = call_arguments(diffusers.FluxImg2ImgPipeline, replace(CALL, batch=3))
    assert given["prompt"] == [PROMPT] * 3
    assert len(given["image"]) == 3
    assert "enable_prompt_rewrite" not in given
    rewriting = call_arguments(diffusers.LongCatImagePipeline, CALL)
    assert rewriting["enable_prompt_rewrite"] is False
    unprompted = call_arguments(diffusers.StableVideoDiffusionPipeline, replace(CALL, batch=2))
    assert unprompted["num_videos_per_prompt"] == 2


def test_texts_stay_as_they_are_without_ftfy() -> None:
    """As in pipelines that call it without asking whether it is installed."""
    module = ModuleType("diffusers.pipelines.pretended")
    exec(MENDS_TEXTS, vars(module))  # noqa: S102
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, module.__name__, module)
        assert len(draw_with_defaults(module.Pipeline, module.Pipeline(), CALL)) == 0
    assert module.seen == [PROMPT]
