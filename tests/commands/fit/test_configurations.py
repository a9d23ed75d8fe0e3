"""Which ways to run a pipeline are tried, with figures that are made up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fixtures.catalogue.techniques import CATALOGUE
from fixtures.catalogue.workloads import WORKLOADS, Workload
from fixtures.commands.fit.configurations import (
    AS_MANY_BYTES,
    SKIPS,
    STORED,
    UNSHOWN,
    Search,
    single_techniques,
    why_not_tried,
)
from tests.support.fits import way

Figures = Callable[[tuple[str, ...]], tuple[int, str]]


def tried(
    figures: Figures, workload: Workload = WORKLOADS["flux"]
) -> tuple[list[str], list[tuple[str, str]], list[str]]:
    """Names of what was found, what did not run, and everything that was attempted."""
    names, attempted = [], []
    reasons = [
        (technique, why_not_tried(technique, workload)) for technique in single_techniques(workload)
    ]
    planned = [technique for technique, reason in reasons if not reason]
    search = Search(workload, planned)
    while (trial := search.next()) is not None:
        attempted.append(trial.name)
        needed, component = figures(tuple(technique.id for technique in trial.techniques))
        if search.accepts(trial, way(needed_bytes=needed, peak_in=component)):
            names.append(trial.name)
    assert search.total == len(attempted)
    return names, [(technique.id, reason) for technique, reason in reasons if reason], attempted


def test_every_technique_that_has_lines_is_tried_once() -> None:
    names, not_run, attempted = tried(lambda _: (10, "text_encoder"))
    assert names == attempted
    assert set(names) == {
        *("fp32", "tf32", "autocast", "fp16", "bf16", "torch_compile", "vae_tiling"),
        *("sequential_cpu_offload", "model_cpu_offload", "layerwise_casting"),
        *("group_offload_leaf", "group_offload_block", "group_offload_stream"),
        *STORED,
    }
    quantized = {
        *("torchao_float8_weight_only", "torchao_int8_dynamic_activations"),
        *("quanto_int8", "bitsandbytes_8bit", "gguf_q8_0"),
    }
    assert {name for name, reason in not_run if reason == AS_MANY_BYTES} == quantized
    # Embeddings change the call, and a tiny VAE is another one for each pipeline.
    unshown = [
        technique.id
        for technique in CATALOGUE
        if technique.family == "prompts" or technique.id == "tiny_vae"
    ]
    assert sorted(name for name, reason in not_run if reason == UNSHOWN) == sorted(unshown)
    # A cache that leaves out every fifth step looks like nothing in three.
    skipping = ["taylorseer_cache", "taylorseer_lite_cache", "mag_cache"]
    assert [name for name, reason in not_run if reason == SKIPS] == skipping
    assert len(not_run) == len(quantized) + len(unshown) + len(skipping)


def test_a_combination_makes_the_component_smaller_that_sets_the_peak() -> None:
    def figures(names: tuple[str, ...]) -> tuple[int, str]:
        return 10 - len(names), "denoiser" if "model_cpu_offload" in names else "text_encoder"

    _, _, attempted = tried(figures)
    offloaded = attempted.index("model_cpu_offload") + 1
    assert [name for name in attempted if "+" in name] == attempted[offloaded : offloaded + 3]
    assert attempted[offloaded : offloaded + 3] == [
        f"{stored} + model_cpu_offload" for stored in ("layerwise_casting", *STORED)
    ]


def test_what_needs_no_less_is_not_given_and_not_tried_with_everything() -> None:
    def tiled(attempted: list[str]) -> int:
        return len([name for name in attempted if name.startswith("vae_tiling + ")])

    names, _, attempted = tried(lambda _: (10, "vae"))
    assert not any("+" in name for name in names)
    assert tiled(attempted) == 1
    _, _, attempted = tried(lambda names: (10 - ("vae_tiling" in names), "vae"))
    assert tiled(attempted) > 5


def test_a_chain_goes_on_as_long_as_it_helps_and_no_set_is_tried_twice() -> None:
    def figures(names: tuple[str, ...]) -> tuple[int, str]:
        return 10 - len(names), "denoiser" if "vae_tiling" in names else "vae"

    names, _, attempted = tried(figures)
    assert "layerwise_casting + vae_tiling + model_cpu_offload" in names
    sets = [frozenset(name.split(" + ")) for name in attempted]
    assert len(set(sets)) == len(sets)


def test_a_batch_is_sliced() -> None:
    flux = WORKLOADS["flux"]
    batch = replace(flux, call=replace(flux.call, batch=4))
    names, _, _ = tried(lambda names: (10 - len(names), "vae"), batch)
    assert "vae_slicing" in names
    assert "vae_slicing" not in tried(lambda names: (10, "vae"))[0]


def test_weights_are_stored_once_and_not_offloaded_layer_by_layer() -> None:
    _, _, attempted = tried(lambda names: (10 - len(names), "denoiser"))
    stored = {*STORED, "layerwise_casting"}
    # Accelerate's hooks would put the weights back as they were.
    assert "layerwise_casting + sequential_cpu_offload" not in attempted
    for names in (set(name.split(" + ")) for name in attempted):
        assert len(names & stored) <= 1
        moved = {name for name in names if name.startswith(("group", "sequential"))}
        assert not (names & {*STORED} and moved)
