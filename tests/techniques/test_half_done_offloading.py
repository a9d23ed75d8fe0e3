"""Offloading that holds for a part of the weights, or of the time, is inactive; so is TF32."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate.hooks import AlignDevicesHook, add_hook_to_module, remove_hook_from_module
from diffusers.hooks import HookRegistry, apply_group_offloading
from diffusers.models.attention_processor import SlicedAttnProcessor

from fixtures.devices.simulated.simulation import DEVICE
from fixtures.techniques.placement import BLOCK, LEAF, group_hooks
from fixtures.techniques.registry import Wrapped, models, switched
from fixtures.workloads import Workload
from tests.support.half_done import STEPS, HalfDone, Spoil, complaint, nothing
from tests.support.simulated_runs import shared_device, small

MATMUL = torch.backends.cuda.matmul


@cache
def workload_of(name: str) -> Workload:
    """As small as the technique allows: tiles need an image larger than one."""
    side_px = 128 if "tiling" in name else 64
    return small(width=side_px, height=side_px, steps=STEPS)


def fp32_precision(mode: str) -> Spoil:
    """Switch TF32 inside of the technique's own context."""

    def spoil(pipeline: Wrapped) -> None:
        pipeline._pipeline = Wrapped(
            pipeline._pipeline, lambda: switched(MATMUL, "fp32_precision", mode)
        )

    return spoil


def all_in_half(pipeline: Any) -> None:
    for model in models(pipeline).values():
        model.half()


# Accelerate's hooks


def the_unet_stays(pipeline: Any) -> None:
    remove_hook_from_module(pipeline.unet, recurse=True)
    pipeline.unet.to(DEVICE)


def the_unet_as_a_whole(pipeline: Any) -> None:
    unet = pipeline.unet
    remove_hook_from_module(unet, recurse=True)
    weights = {name: weight.to("cpu") for name, weight in unet.state_dict().items()}
    hook = AlignDevicesHook(
        execution_device=DEVICE, offload=True, weights_map=weights, place_submodules=True
    )
    add_hook_to_module(unet, hook)


def excluded(part: str) -> Spoil:
    def spoil(pipeline: Any) -> None:
        offloaded = [name for name in ("text_encoder", "unet", "vae") if name != part]
        pipeline.model_cpu_offload_seq = "->".join(offloaded)
        pipeline._exclude_from_cpu_offload = [part]
        pipeline.enable_model_cpu_offload(device=DEVICE)

    return spoil


def all_leave_at_the_end(pipeline: Any) -> None:
    """Each hook forgets which component came before."""
    renewed = pipeline.maybe_free_model_hooks

    def renew() -> None:
        renewed()
        for hook in pipeline._all_hooks:
            hook.hook.prev_module_hook = None

    pipeline.maybe_free_model_hooks = renew


def components_never_leave(pipeline: Any) -> None:
    pipeline.maybe_free_model_hooks = lambda: None


def never_offloaded(pipeline: Any) -> None:
    pipeline.remove_all_hooks()
    pipeline.to(DEVICE)


# Groups


def ungrouped(model: Any) -> None:
    registry = HookRegistry.check_if_exists_or_initialize(model)
    registry.remove_hook("group_offloading", recurse=True)
    for name in ("lazy_prefetch_group_offloading", "layer_execution_tracker"):
        registry.remove_hook(name, recurse=True)


def regrouped(part: str, **options: Any) -> Spoil:
    def spoil(pipeline: Any) -> None:
        model = getattr(pipeline, part)
        ungrouped(model)
        apply_group_offloading(model, onload_device=DEVICE, **options)

    return spoil


def the_unet_is_ungrouped(pipeline: Any) -> None:
    ungrouped(pipeline.unet)
    pipeline.unet.to(DEVICE)


def half_of_the_unet_is_ungrouped(pipeline: Any) -> None:
    hooked = [module for module in pipeline.unet.modules() if group_hooks(module)]
    leaves = [module for module in hooked if not list(module.children())]
    for module in leaves[::2]:
        ungrouped(module)
        module.to(DEVICE)


def groups_stay(pipeline: Any) -> None:
    for hook in group_hooks(pipeline.unet):
        hook.group.offload_ = lambda: None


def groups_leave_before_the_vae(pipeline: Any) -> None:
    """All of the UNet's groups gather, and leave together once it is done."""
    leave = [hook.group.offload_ for hook in group_hooks(pipeline.unet)]
    groups_stay(pipeline)
    decode = pipeline.vae.decode

    def decode_alone(*args: Any, **kwargs: Any) -> Any:
        for group in leave:
            group()
        return decode(*args, **kwargs)

    pipeline.vae.decode = decode_alone


def half_of_the_streams(pipeline: Any) -> None:
    for hook in group_hooks(pipeline.unet)[::2]:
        hook.group.stream = None


def a_file_is_lost(pipeline: Any) -> None:
    [hook, *_] = group_hooks(pipeline.text_encoder)
    Path(hook.group.safetensors_file_path).unlink()


def huge_slices(pipeline: Any) -> None:
    pipeline.unet.set_attn_processor(SlicedAttnProcessor(10**6))


SEQUENTIAL, MODEL = "sequential_cpu_offload", "model_cpu_offload"
LEAVES, BLOCKS = "group_offload_leaf", "group_offload_block"
STREAM, DISK, MIXED = "group_offload_stream", "group_offload_disk", "group_offload_mixed"
SLICED = "sequential_cpu_offload_attention_slicing"
TILED = "group_offload_leaf_vae_tiling"
UNET_BY_TWO = regrouped("unet", offload_type=BLOCK, num_blocks_per_group=2)
VAE_BY_LEAVES = regrouped("vae", offload_type=LEAF)
VAE_AT_ONCE = regrouped("vae", offload_type=BLOCK, num_blocks_per_group=10**6)
ENCODER_BY_LEAVES = regrouped("text_encoder", offload_type=LEAF)
TOGETHER = groups_leave_before_the_vae
TF32, IEEE = fp32_precision("tf32"), fp32_precision("ieee")
CASES = [
    HalfDone("fp32", "TF32", TF32, "was 'tf32' during the call, not", called=True),
    HalfDone("tf32", "switched off inside", IEEE, "was 'ieee' during", called=True),
    HalfDone("tf32", "without fp32 weights", all_in_half, "is torch.float16, not", called=True),
    HalfDone(SEQUENTIAL, "the UNet stays", the_unet_stays, "are not offloaded between calls"),
    HalfDone(SEQUENTIAL, "as a whole", the_unet_as_a_whole, "come with all that"),
    HalfDone(MODEL, "not the VAE", excluded("vae"), "2 of 3 components"),
    HalfDone(MODEL, "all wait", all_leave_at_the_end, "of text_encoder", called=True),
    HalfDone(MODEL, "none leaves", components_never_leave, "of vae stay", called=True),
    HalfDone(LEAVES, "groups stay", groups_stay, "of unet stayed on", called=True),
    HalfDone(LEAVES, "not the UNet", the_unet_is_ungrouped, "unet carries"),
    HalfDone(LEAVES, "half", half_of_the_unet_is_ungrouped, "of unet are in no group"),
    HalfDone(LEAVES, "by blocks", UNET_BY_TWO, "groups of unet are block_level"),
    HalfDone(BLOCKS, "huge groups", VAE_AT_ONCE, "modules, not 2"),
    HalfDone(BLOCKS, "together", TOGETHER, "before the denoiser's last", called=True),
    HalfDone(STREAM, "half the streams", half_of_the_streams, "have a stream"),
    HalfDone(DISK, "in memory", VAE_BY_LEAVES, "a group of vae waits in memory, not in a file"),
    HalfDone(DISK, "a lost file", a_file_is_lost, "the file of a group of"),
    HalfDone(MIXED, "by leaves", ENCODER_BY_LEAVES, "groups of text_encoder are leaf_level"),
    HalfDone(SLICED, "huge slices", huge_slices, "take all heads"),
    HalfDone(SLICED, "the UNet stays", the_unet_stays, "unet."),
    HalfDone(MODEL, "not offloaded", never_offloaded, "0 of 3 components have an offload hook"),
    HalfDone(TILED, "untiled", lambda p: p.vae.disable_tiling(), "tiling is off"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_half_done_offloading_is_inactive(case: HalfDone) -> None:
    case.is_noticed(workload_of(case.technique), shared_device())


SHOWN = {SEQUENTIAL, MODEL, LEAVES, BLOCKS}
"""In full they are active in `test_snippets.py`."""


@pytest.mark.parametrize("name", sorted({case.technique for case in CASES} - SHOWN))
def test_done_in_full_it_is_active(name: str) -> None:
    assert complaint(name, workload_of(name), shared_device(), nothing) is None
