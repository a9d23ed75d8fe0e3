"""Every technique: its activation check passes with it, fails without it, and leaving restores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from fixtures.devices.cpu import CpuDevice
from fixtures.devices.global_state import changed_state, read_global_state
from fixtures.measuring.observation import observe
from fixtures.scenarios import Scenario, scenarios
from fixtures.techniques import CATALOGUE, MODULES
from fixtures.techniques.placement import group_hooks
from fixtures.techniques.registry import models, switched
from fixtures.techniques.snapshots import DENOISER, Snapshot
from fixtures.techniques.technique import ActivationContext, Technique, UnknownTechniqueError
from fixtures.techniques.vae import expected_tiles
from fixtures.techniques.wrapping import CalledWithin
from fixtures.workloads import WORKLOADS, Workload
from tests.support.fake_device import FakeDevice
from tests.support.offloads_to_itself import OffloadsToItself
from tests.support.small_workloads import small_workload

WORKLOAD_OF_KIND = {
    "single": "storybook",
    "batch": "storybook-batch8",
    "large": "storybook-256",
    "transformer": "storybook-dit",
}
NEEDS_CUDA = frozenset({"cudnn", "tf32", "xformers", "streams"})
CANNOT_OFFLOAD_TO_ITSELF = frozenset({"sequential_cpu_offload"})
"""accelerate refuses to offload leaf by leaf from the CPU to the CPU."""


@pytest.fixture(scope="module")
def device() -> CpuDevice:
    return OffloadsToItself()


def _brief(technique: Technique) -> Workload:
    """A workload of the technique's kind, with the two steps that show what is in effect."""
    if set(technique.kinds) == {"video"}:
        return small_workload("cogvideox-5b")
    if technique.settings:
        known = technique.settings
        return WORKLOADS["storybook-dit" if "storybook-dit" in known else next(iter(known))]
    kind = "single" if "single" in technique.kinds else min(technique.kinds)
    return _shortened(WORKLOAD_OF_KIND[kind])


@cache
def _shortened(name: str) -> Workload:
    workload = WORKLOADS[name]
    return replace(
        workload, call=replace(workload.call, steps=2, batch=min(2, workload.call.batch))
    )


def _runs_here(technique: Technique) -> bool:
    return (
        not NEEDS_CUDA & set(technique.needs)
        and not technique.missing_libraries
        and not any(technique.id.startswith(name) for name in CANNOT_OFFLOAD_TO_ITSELF)
    )


RUNNING = [one for one in CATALOGUE if _runs_here(one) and not one.settings]
"""Not what is settled for some workloads alone: `test_caching.py`, `test_transformer_attention.py`,
`test_prompts.py`, `test_optional.py`."""


@pytest.fixture(scope="module")
def reference_images(device: CpuDevice) -> dict[str, Any]:
    return {}


def _draw_reference(workload: Workload, device: CpuDevice) -> Any:
    with CATALOGUE["fp32"].applied(workload, device) as pipeline:
        return workload.draw(pipeline)


@pytest.mark.parametrize("technique", RUNNING, ids=lambda technique: technique.id)
def test_a_technique_is_in_effect_and_leaving_it_restores_everything(
    technique: Technique, device: CpuDevice, reference_images: dict[str, Any]
) -> None:
    workload = _brief(technique)
    if workload.name not in reference_images:
        reference_images[workload.name] = _draw_reference(workload, device)
    before = read_global_state()

    observation = observe(Scenario(workload, technique), device)

    assert observation.inactive is None
    assert observation.left_behind == ()
    assert changed_state(before, read_global_state()) == []
    # The next reference is drawn to the bit as the one before: weights, processors, hooks, flags.
    after = _draw_reference(workload, device)
    np.testing.assert_array_equal(after, reference_images[workload.name])


@pytest.mark.parametrize("technique", RUNNING, ids=lambda technique: technique.id)
def test_leaving_removes_hooks_and_processors_from_the_pipeline_itself(
    technique: Technique, device: CpuDevice
) -> None:
    workload = _brief(technique)
    with technique.applied(workload, device) as pipeline:
        workload.draw(pipeline)
    for model in models(pipeline).values():
        assert group_hooks(model) == []
        assert not hasattr(model, "_hf_hook")
    processors = getattr(pipeline.unet, "attn_processors", {})
    assert {type(p).__name__ for p in processors.values()} <= {"AttnProcessor2_0"}


@pytest.mark.parametrize("technique", list(CATALOGUE), ids=lambda technique: technique.id)
def test_the_activation_check_complains_where_the_technique_was_not_applied(
    technique: Technique, device: CpuDevice
) -> None:
    workload = _brief(technique)
    if technique.id == "sdpa":
        plain = CATALOGUE["naive_attention"]
    else:
        plain = CATALOGUE["bf16" if technique.id == "fp32" else "fp32"]
    with plain.applied(workload, device) as pipeline, device.observe(pipeline) as trace:
        workload.draw(pipeline)
    snapshots = [Snapshot(DENOISER, read_global_state())]
    context = ActivationContext(pipeline, trace, snapshots, workload, device)
    complaint = technique.activation_check(context)
    assert complaint
    assert "\n" not in complaint


@pytest.mark.parametrize("technique", list(CATALOGUE), ids=lambda technique: technique.id)
def test_every_technique_names_its_document_and_claims_against_known_techniques(
    technique: Technique,
) -> None:
    assert technique.document
    assert technique.help.endswith(".")
    assert 0 < technique.min_ssim_on("any workload") <= 1
    for claim in technique.claims:
        other = CATALOGUE[claim.than]
        assert set(other.kinds) & set(technique.kinds), (
            f"{claim} can never be measured on one workload"
        )


def test_every_documented_technique_has_a_row() -> None:
    documented = """
        cudnn_benchmark tf32 autocast fp16 bf16 attention_slicing sdpa xformers channels_last
        traced_unet vae_slicing vae_tiling sequential_cpu_offload model_cpu_offload
        group_offload_leaf group_offload_block group_offload_stream group_offload_mixed
        group_offload_disk
        layerwise_casting torch_compile
        torchao_int8_weight_only quanto_int8 gguf_q8_0 bitsandbytes_8bit bitsandbytes_nf4
        prompt_embeddings feed_forward_chunking deep_cache token_merging lora_hotswap
    """
    assert set(documented.split()) <= set(CATALOGUE.techniques)
    named = {t.apply.__module__.rpartition(".")[2] for t in CATALOGUE}
    assert named == set(MODULES)


def test_a_scenario_is_made_for_every_technique_of_the_workload_s_kind() -> None:
    ids = {scenario.id for scenario in scenarios(WORKLOADS)}
    assert {"storybook-fp16", "storybook-batch8-vae_slicing", "storybook-256-vae_tiling"} <= ids
    assert "storybook-vae_tiling" not in ids
    for name in WORKLOADS:
        assert f"{name}-fp32" in ids


def test_what_skips_steps_is_timed_with_every_step() -> None:
    """A timed call of a few steps would leave nothing out, or another share of the work."""
    found = scenarios(WORKLOADS)
    skipping = [one for one in found if one.technique.skips]
    assert {one.workload.timed_steps for one in skipping} == {None, 3}
    assert {one.id for one in skipping if one.steps_of_timed_call != one.workload.call.steps} == (
        set()
    )
    others = [one for one in found if not one.technique.skips]
    assert all(one.steps_of_timed_call == one.workload.steps_of_timed_call for one in others)


def test_a_technique_with_settings_runs_where_it_has_some() -> None:
    technique = replace(CATALOGUE["sdpa"], settings={"storybook": {"depth": 3}})
    assert technique.applies_to(WORKLOADS["storybook"])
    assert not technique.applies_to(WORKLOADS["sd15"])
    assert replace(technique, settings={"": {"depth": 3}}).applies_to(WORKLOADS["sd15"])


def test_a_setting_in_a_technique_s_name_replaces_its_own() -> None:
    found = CATALOGUE["first_block_cache.threshold=1"]
    assert found.id == "first_block_cache.threshold=1"
    assert found.settings["storybook-dit"] == {"threshold": 1.0}
    assert found.is_swept
    assert CATALOGUE["first_block_cache"].settings["storybook-dit"] != {"threshold": 1.0}
    assert CATALOGUE["taylorseer_cache.interval=3"].settings["storybook-dit"] == {
        "interval": 3,
        "warm_up_steps": 10,
    }


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("no_cache.threshold=1", "Technique 'no_cache' is unknown; known are fp32,"),
        ("fp16.threshold=1", "technique 'fp16' has no settings."),
        ("taylorseer_cache.depth=1", "technique 'taylorseer_cache' has interval, warm_up_steps."),
        ("taylorseer_cache.interval=2.5", "'2.5' is no int."),
        ("first_block_cache.threshold=low", "'low' is no float."),
        ("first_block_cache.threshold", "'' is no float."),
        ("faster_cache.tensor_format=none of it", "'none of it' is no str."),
        ("mag_cache.ratios=FLUX_MAG_RATIOS", "'FLUX_MAG_RATIOS' is no tuple."),
    ],
)
def test_a_setting_that_cannot_be_is_refused(name: str, sentence: str) -> None:
    with pytest.raises(UnknownTechniqueError) as caught:
        CATALOGUE[name]
    assert sentence in caught.value.args[0]


def test_group_offload_excludes_model_offload_with_the_library_s_own_error(
    device: CpuDevice,
) -> None:
    workload = _brief(CATALOGUE["group_offload_leaf"])
    with (
        CATALOGUE["group_offload_leaf"].applied(workload, device) as pipeline,
        pytest.raises(ValueError, match="group offload"),
    ):
        pipeline.enable_model_cpu_offload(device=device.torch_device)


def test_slicing_and_tiling_do_nothing_to_one_small_image(device: CpuDevice) -> None:
    """The docs say so: 'no impact on one image', 'off at 512x512 and below'."""
    workload = _brief(CATALOGUE["fp32"])
    wanted = _draw_reference(workload, device)
    for name in ("vae_slicing", "vae_tiling"):
        with CATALOGUE[name].applied(workload, device) as pipeline:
            with device.observe(pipeline) as trace:
                images = workload.draw(pipeline)
            complaint = CATALOGUE[name].activation_check(
                ActivationContext(pipeline, trace, [], workload, device)
            )
        np.testing.assert_array_equal(images, wanted)
        assert trace.calls["vae"] == 1
        if name == "vae_tiling":
            assert complaint is not None
            assert "not larger than one tile" in complaint


class _Tiles:
    tile_latent_min_size = 64
    tile_sample_min_size = 512
    tile_overlap_factor = 0.25


def test_a_4k_image_has_60_tiles() -> None:
    assert expected_tiles(_Tiles(), 2224 // 8, 3840 // 8) == 60
    assert expected_tiles(_Tiles(), 64, 64) == 1


def test_a_switch_is_put_back_even_if_the_call_raises() -> None:
    def fail() -> None:
        raise KeyError("inside")

    before = torch.backends.cudnn.benchmark
    call = CalledWithin(fail, lambda: switched(torch.backends.cudnn, "benchmark", not before))
    with pytest.raises(KeyError):
        call()
    assert torch.backends.cudnn.benchmark is before


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize(
    ("installed", "reason"),
    [
        ("0.32.2", "needs diffusers 0.33 or later, this is 0.32.2"),
        ("0.33.0.dev0", None),
        ("0.33.1", None),
        ("1.0.0", None),
    ],
)
def test_an_older_diffusers_lacks_what_came_later(
    monkeypatch: pytest.MonkeyPatch, installed: str, reason: str | None
) -> None:
    versions = {"diffusers": installed}
    monkeypatch.setattr("fixtures.techniques.technique.software_versions", lambda: versions)
    assert CATALOGUE["layerwise_casting"].unsupported(CpuDevice()) == reason
    assert CATALOGUE["bf16"].unsupported(CpuDevice()) is None


@pytest.mark.parametrize(
    ("instruction_sets", "timed"),
    [
        ([], set()),
        (["avx2", "avx512f"], set()),
        (["avx2", "avx512f", "avx512_bf16"], {"bf16", "autocast"}),
        (["avx2", "amx_bf16"], {"bf16", "autocast"}),
        (["avx2", "avx512_fp16"], {"fp16"}),
        (["avx2", "amx_fp16", "amx_bf16"], {"fp16", "bf16", "autocast"}),
        (["asimd", "asimdhp"], {"fp16"}),
        (["asimd", "asimdhp", "bf16"], {"fp16", "bf16", "autocast"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_half_precision_runs_on_every_processor_and_is_timed_where_that_computes_in_it(
    instruction_sets: list[str], timed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = {"processor": "Testron 9000", "instruction_sets": instruction_sets}
    monkeypatch.setattr("fixtures.devices.cpu.processor", lambda: facts)
    device = CpuDevice()
    half = [CATALOGUE[name] for name in ("fp16", "bf16", "autocast")]
    assert {technique.unsupported(device) for technique in half} == {None}
    assert {technique.id for technique in half if technique.untimed(device) is None} == timed
    reasons = {technique.untimed(device) for technique in half} - {None}
    assert all("arithmetic; how fast it emulates that" in str(reason) for reason in reasons)


def test_without_a_clock_nothing_is_timed() -> None:
    device = FakeDevice(lacks={"clock": "takes no time"})
    assert {technique.untimed(device) for technique in CATALOGUE} == {"takes no time"}


def test_every_group_offloading_came_with_0_33_and_files_a_release_later() -> None:
    late = {one.id for one in CATALOGUE if one.since and not one.settings}
    assert CATALOGUE["group_offload_disk"].since == "0.34"
    grouped = {technique.id for technique in CATALOGUE if "group_offload" in technique.id}
    quantized = {technique.id for technique in CATALOGUE if technique.family == "quantization"}
    assert late == grouped | quantized | {"layerwise_casting"}
