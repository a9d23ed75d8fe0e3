"""Techniques on SDXL, SD3, Flux and CogVideoX, on small copies of their pipelines."""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from diffusers.hooks import apply_group_offloading

from fixtures.catalogue.matrix import Scenario, scenarios
from fixtures.catalogue.techniques import CATALOGUE
from fixtures.catalogue.techniques.layout import layerwise_casting
from fixtures.catalogue.techniques.placement import BLOCK, LEAF, group_hooks
from fixtures.catalogue.techniques.registry import models
from fixtures.catalogue.techniques.technique import ActivationContext
from fixtures.catalogue.workloads import WORKLOADS, Workload
from fixtures.devices import Trace
from fixtures.devices.cpu import CpuDevice
from fixtures.devices.phases import denoiser
from fixtures.records.images import Images
from fixtures.records.record import STATE
from fixtures.worker.observation import observe
from tests.support.differences import ssim
from tests.support.half_done import STEPS, complaint
from tests.support.offloads_to_itself import OffloadsToItself
from tests.support.small_workloads import small_workload

pytestmark = [
    # Schedulers of diffusers turn tensors into arrays in a way that numpy 2 deprecates.
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:`upcast_vae` is deprecated:FutureWarning"),
]


NAMES = ("sdxl", "sd3", "flux", "cogvideox-5b")
"""`tests/catalogue/techniques` applies techniques to the embedded models, a UNet and a Flux."""


DEVICE = OffloadsToItself()


@cache
def _brief(name: str, steps: int = 2) -> Workload:
    workload = small_workload(name)
    return replace(workload, call=replace(workload.call, steps=steps))


def _brief_for(case: Scenario) -> Workload:
    """With all steps where the technique skips work in some of them."""
    name = case.workload.name
    return _brief(name, WORKLOADS[name].call.steps) if case.technique.skips else _brief(name)


def _runs_here(scenario: Scenario) -> bool:
    technique = scenario.technique
    if scenario.workload.name == "flux" and not technique.skips and technique.id != "bf16":
        return False  # storybook-dit is one, and SD3 another transformer
    needs_more = set(technique.needs) - {"accelerator"} or technique.missing_libraries
    # accelerate refuses to offload leaf by leaf to where the weights are; half precision is slow.
    slow = technique.half and scenario.id not in ("sdxl-fp16", "flux-bf16")
    return not needs_more and not technique.id.startswith("sequential") and not slow


SCENARIOS = [scenario for scenario in scenarios(NAMES) if _runs_here(scenario)]


@cache
def reference_images(name: str) -> Images:
    return observe(Scenario(_brief(name), CATALOGUE["fp32"]), DEVICE).images


@pytest.mark.parametrize("case", SCENARIOS, ids=lambda case: case.id)
def test_a_technique_is_in_effect_and_draws_the_same_image(case: Scenario) -> None:
    observation = observe(Scenario(_brief_for(case), case.technique), DEVICE)
    assert observation.inactive is None
    assert STATE not in observation.faults
    # Tiles of random weights differ visibly, and what relies on trained ones draws anything.
    relies = case.technique.for_trained or case.technique.skips
    if "vae_tiling" not in case.technique.id and not relies:
        assert ssim(observation.images, reference_images(case.workload.name)) > 0.95


CACHES = [scenario for scenario in SCENARIOS if scenario.technique.skips]


@pytest.mark.parametrize("case", CACHES, ids=lambda case: case.id)
def test_a_cache_that_is_disabled_after_half_of_the_steps_is_not_in_effect(case: Scenario) -> None:
    workload = _brief_for(case)

    def disable_after_half(pipeline: Any) -> None:
        calls = iter(range(1000))

        def count(*_: Any) -> None:
            if next(calls) == STEPS + workload.call.steps // 2:
                pipeline.transformer.disable_cache()

        pipeline.transformer.register_forward_pre_hook(count)

    said = complaint(case.technique.id, workload, DEVICE, disable_after_half)
    assert said is not None
    assert "is expected" in said


# Precision


def test_fp16_leaves_the_output_layers_of_t5_in_fp32() -> None:
    technique = CATALOGUE["fp16"]
    workload = _brief("sd3")
    pipeline = workload.load(torch.float16)
    context = ActivationContext(pipeline, Trace(), [], workload, DEVICE)
    assert technique.activation_check(context) is None
    pipeline.text_encoder_3.half()
    complaint = technique.activation_check(context)
    assert "wo.weight is torch.float16, not torch.float32" in str(complaint)


@pytest.mark.parametrize("name", ["sd3", "flux"])
def test_casting_computes_in_the_workload_s_own_precision(name: str) -> None:
    accelerator = SimpleNamespace(base_dtype=torch.float16, torch_device=torch.device("cpu"))
    workload = small_workload(name)
    (pipeline,) = layerwise_casting(workload, accelerator)
    wanted = torch.float16 if name == "sd3" else torch.bfloat16
    assert denoiser(pipeline).dtype == wanted
    assert pipeline.vae.dtype == wanted


# Offloading


def test_blocks_never_bring_back_the_vae_of_a_video_so_it_is_offloaded_by_leaves() -> None:
    def levels(name: str) -> dict[str, set[str]]:
        with CATALOGUE["group_offload_block"].applied(small_workload(name), DEVICE) as pipeline:
            return {
                part: {hook.config.offload_type.value for hook in group_hooks(model)}
                for part, model in models(pipeline).items()
            }

    assert levels("cogvideox-5b") == {
        "text_encoder": {BLOCK},
        "transformer": {BLOCK},
        "vae": {LEAF},
    }
    assert levels("flux")["vae"] == {BLOCK}


def test_the_example_of_the_docs_mixes_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, dict[str, Any]] = {}

    # A model's own method passes on every option, the function is given those that were chosen.
    given = inspect.signature(apply_group_offloading).parameters.values()
    defaults = {
        parameter.name: parameter.default
        for parameter in given
        if parameter.default is not parameter.empty
    }

    def record(module: Any, **options: Any) -> None:
        del options["onload_device"]
        asked[type(module).__name__] = {**defaults, **options}

    monkeypatch.setattr("diffusers.hooks.apply_group_offloading", record)
    device: Any = CpuDevice()
    workload = small_workload("cogvideox-5b")
    with CATALOGUE["group_offload_mixed"].applied(workload, device) as pipeline:
        context = ActivationContext(pipeline, Trace(), [], workload, device)
        complaint = CATALOGUE["group_offload_mixed"].activation_check(context)
    assert complaint == "no module of text_encoder carries a group-offloading hook"
    leaf = {**defaults, "offload_type": LEAF, "num_blocks_per_group": None}
    block = {**defaults, "offload_type": BLOCK, "num_blocks_per_group": 2}
    assert asked == {
        "T5EncoderModel": {**block, "use_stream": False},
        "CogVideoXTransformer3DModel": {**leaf, "use_stream": True},
        "AutoencoderKLCogVideoX": {**leaf, "use_stream": False},
    }
