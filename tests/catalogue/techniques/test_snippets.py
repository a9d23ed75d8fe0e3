"""The lines that are shown do what the technique of the catalogue does."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
import torch

from fixtures.catalogue.matrix import Scenario, scenarios
from fixtures.catalogue.techniques import CATALOGUE
from fixtures.catalogue.techniques.snapshots import record_snapshots
from fixtures.catalogue.techniques.snippets import applied, loading_lines
from fixtures.catalogue.techniques.technique import ActivationContext
from fixtures.catalogue.workloads import Workload
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.records.counts import BYTES_TO_DEVICE, BYTES_TO_HOST
from fixtures.records.run import PAGEABLE, PINNED, WHOLE
from fixtures.worker.trial import try_configuration
from tests.support.simulated_runs import small
from tests.support.small_workloads import small_workload

PLAIN = SimulatedDevice("rtx-4090")
STEPS = 2
BY_FAMILY = {
    "flux": ("bf16", "layerwise_casting"),
    "cogvideox-5b": ("group_offload_block", "vae_tiling"),
}
"""Techniques whose lines, or what they do, depend on the family of the pipeline."""
SHOWN = [
    scenario
    for scenario in scenarios(("sd15", *BY_FAMILY))
    if scenario.technique.code is not None
    and scenario.unsupported(PLAIN) is None
    and scenario.technique.id in BY_FAMILY.get(scenario.workload.name, [scenario.technique.id])
]


@cache
def brief(name: str) -> Workload:
    workload = small(width=64, height=64) if name == "sd15" else small_workload(name)
    return replace(workload, call=replace(workload.call, steps=STEPS))


@pytest.mark.parametrize("case", SHOWN, ids=lambda case: str(case.id))
def test_lines_and_technique_take_the_same_and_it_is_in_effect(case: Scenario) -> None:
    workload, technique = brief(case.workload.name), case.technique
    card = SimulatedDevice(PLAIN.profile, trial=True)
    shown = try_configuration(workload, [technique], card)
    with Scenario(workload, technique).running(PLAIN) as pipeline:
        with record_snapshots(pipeline, PLAIN) as snapshots, PLAIN.observe(pipeline) as trace:
            workload.draw(pipeline, steps=STEPS)
        context = ActivationContext(pipeline, trace, snapshots, workload, PLAIN)
        assert technique.activation_check(context) is None
        del pipeline, context
    assert shown.peak_bytes == trace.component_peak_bytes[WHOLE]
    assert shown.pageable_bytes == trace.host_bytes[PAGEABLE]
    assert shown.pinned_bytes == trace.host_bytes[PINNED]
    per_call = trace.per_call
    copied = per_call.total(BYTES_TO_DEVICE) + per_call.total(BYTES_TO_HOST)
    assert shown.copied_bytes == round(copied * trace.calls["denoiser"] / STEPS)
    assert shown.bound_ms == pytest.approx(trace.bound_ms)


def test_every_technique_shows_lines_or_takes_more_than_a_few() -> None:
    # diffusers quantizes while it loads, so what a user writes takes the place of the loading.
    # A cache shows nothing in the few steps that `fit` tries.
    silent = {
        technique.id
        for technique in CATALOGUE
        if technique.code is None and technique.family not in ("quantization", "caching")
    }
    assert silent == {
        *("traced_unet", "channels_last_traced_unet"),
        *("vae_slicing_xformers", "vae_tiling_xformers", "group_offload_mixed"),
        *("sequential_cpu_offload_attention_slicing", "group_offload_leaf_vae_tiling"),
        *("prompt_embeddings", "tiny_vae", "token_merging", "lora_hotswap"),
    }


def test_weights_are_stored_before_they_are_placed() -> None:
    pipeline = small_workload("flux").load(torch.float32)
    both = [CATALOGUE["group_offload_stream"], CATALOGUE["layerwise_casting"]]
    lines = applied(both, pipeline, torch.bfloat16, "pipeline()")
    assert lines == (
        "pipeline.transformer.enable_layerwise_casting(\n"
        "    storage_dtype=torch.float8_e4m3fn, compute_dtype=torch.bfloat16\n"
        ")\n"
        "pipeline.enable_group_offload(\n"
        '    onload_device=torch.device("cuda"),\n'
        '    offload_type="leaf_level",\n'
        "    use_stream=True,\n"
        ")\n"
        "result = pipeline()"
    )


def test_what_holds_the_call_comes_last() -> None:
    pipeline = small_workload("flux").load(torch.float32)
    lines = applied([CATALOGUE["autocast"]], pipeline, torch.bfloat16, "pipeline()")
    assert lines == (
        'pipeline.to("cuda")\n'
        'with torch.autocast("cuda", dtype=torch.bfloat16):\n'
        "    result = pipeline()"
    )
    whole = f"{loading_lines(pipeline, 'owner/name', torch.float32)}\n{lines}"
    compile(whole, "whole", "exec")
    assert whole.startswith(
        "import torch\nfrom diffusers import FluxPipeline\n\n"
        'pipeline = FluxPipeline.from_pretrained("owner/name", torch_dtype=torch.float32)\n'
    )
