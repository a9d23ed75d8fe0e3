"""The figures that were found after the protocol: written down before ours were computed."""

from __future__ import annotations

from functools import partial

from tests.support.published import placing, scripts, sources
from tests.support.published.placing import fused, in_fp16, model_offload, naive_unet, on_device
from tests.support.published.records import GB, MIB, Call, Changes, Counter, Figure
from tests.support.published.seen import UNSTATED, size

_SLICED = ("fp16", "attention_slicing")
_TILED = ("bf16", "vae_slicing", "vae_tiling")
_FOUR: Changes = (("batch", 4),)
_SMALLER = "cuDNN of torch 1.13 took smaller workspaces: batch 4 reserved hardly more than tensors"
_OLDER_VAE = "older VAEs of diffusers kept fewer frames, as in the calls beside it that were seen"
_NEEDED = "a requirement, not a reading on a card that has room for workspaces"
_PASCAL = "Pascal has no tensor cores, and its fp16 takes workspaces by another rule"
_NO_CORES = "Pascal has no tensor cores: nothing is taken beside the tensors"
_BUFFERS = "diffusers of 2024 cast buffers that are in no file, too: then 12.55"


def _lambda(published: str, card: str, dtype: str, batch: int) -> Figure:
    """Stable Diffusion 1.4 without its safety checker, with whole score matrices."""
    return Figure(
        sources.LAMBDA,
        Call(
            "sd15",
            placing.naive,
            (("batch", batch),),
            "float32" if dtype == "fp32" else "float16",
        ),
        published,
        card,
        "reserved",
        unit=GB,
        name=f"`sd15`, {dtype}, plain attention, batch {batch}",
        reason=_SMALLER if dtype == "fp16" else "",
    )


def _cogview4(published: str, width: int, height: int, *, offload: bool = False) -> Figure:
    """Four images; the card's code cuts the VAE's batch and tiles."""
    how = (*_TILED[1:], "model_cpu_offload") if offload else _TILED
    changes = (*size(width, height), *_FOUR)
    return Figure(
        sources.COGVIEW4,
        Call("cogview4", how, changes),
        published,
        "h100",
        "shown",
        measured_on=UNSTATED,
    )


_test = partial(Figure, sources.TESTS, card="t4", unit=GB)
_torchao = partial(Figure, sources.TORCHAO, card="a100-80gb")
_pascal = partial(
    Figure, sources.PASCAL, card="t4", unit=MIB, measured_on="Tesla P100", outside=True
)
_page = partial(Figure, card="h100", counter="shown", measured_on=UNSTATED)
_ltx = partial(Figure, sources.NIGHTLY, card="a100-80gb", measured_on=UNSTATED)


def _latents(published: str, counter: Counter) -> Figure:
    return Figure(
        sources.QUANTIZER,
        scripts.flux_latents,
        published,
        "h100",
        counter,
        name="Flux bf16 768x768, transformer and VAE, up to latents",
        measured_on=UNSTATED,
    )


UNSEEN = (
    _ltx(scripts.denoiser("ltx", "bf16"), "25.21 to 25.22", name="denoiser of LTX 0.9.7, bf16"),
    _ltx(scripts.denoiser("ltx", "fp8"), "24.38", name="denoiser of LTX 0.9.7, fp8"),
    _ltx(scripts.denoiser("ltx", "leaves"), "1.04 to 1.05", name="denoiser of LTX 0.9.7, leaves"),
    _lambda("3.41", "a100-40gb", "fp16", 1),
    _lambda("5.53", "a100-40gb", "fp16", 2),
    _lambda("6.74", "a100-40gb", "fp16", 4),
    _lambda("12.6", "a100-40gb", "fp16", 8),
    _lambda("7.76", "a100-40gb", "fp32", 1),
    _lambda("18.04", "a100-40gb", "fp32", 4),
    _lambda("3.43", "a10g", "fp16", 1),
    _lambda("12.57", "h100", "fp16", 8),
    _test(Call("sd14", _SLICED), "3.75", bound="at most"),
    _test(
        Call("sd14", naive_unet(on_device)),
        "3.75",
        bound="more than",
        name="`sd14`, plain attention",
    ),
    _test(Call("sd14", (*_SLICED, "vae_slicing"), _FOUR), "4", bound="at most"),
    _test(Call("sd14", _SLICED, _FOUR), "4", bound="more than"),
    _test(
        Call("sd14", placing.sliced_sequential),
        "2.8",
        bound="at most",
        name="`sd14`, sequential offload, attention head by head",
    ),
    _test(
        Call("sd14", naive_unet(model_offload)),
        "3.5",
        bound="at most",
        name="`sd14`, model offload, plain attention",
    ),
    _test(Call("sd14", ("attention_slicing", "model_cpu_offload")), "3", bound="at most"),
    _cogview4("33", 512, 512),
    _cogview4("35", 1280, 720),
    _cogview4("35", 1024, 1024),
    _cogview4("43", 2048, 2048),
    _cogview4("20", 512, 512, offload=True),
    _cogview4("20", 1024, 1024, offload=True),
    _cogview4("20", 1920, 1280, offload=True),
    _cogview4("21", 2048, 2048, offload=True),
    Figure(
        sources.FME,
        scripts.svd(14, 14),
        "39.49 to 40.39",
        "a100-80gb",
        "shown",
        name="Stable Video Diffusion fp16, 1024x576, 14 frames",
    ),
    _page(
        sources.SVD,
        scripts.svd(25, 2, saving=True),
        "8",
        bound="at most",
        name="Stable Video Diffusion fp16, 1024x576, 25 frames, two at once, model offload, chunks",
        reason=_NEEDED,
    ),
    _page(
        sources.MOCHI,
        Call("mochi", ("vae_tiling", "autocast", "model_cpu_offload")),
        "42",
        reason=_NEEDED,
    ),
    _page(
        sources.MOCHI,
        Call("mochi", ("vae_tiling", "model_cpu_offload")),
        "22",
        reason=_NEEDED,
    ),
    _page(
        sources.WAN_NOW,
        Call("wan-14b", placing.around_vae, size(832, 480)),
        "13",
        name="`wan-14b` 832x480, groups around a VAE in fp32",
        reason=_NEEDED,
    ),
    _page(
        sources.LTX,
        Call("ltx-video", placing.fp8(placing.by_kind), size(768, 512, 161)),
        "10",
        name="`ltx-video` 768x512, 161 frames, fp8 layerwise, groups by leaves and blocks",
        reason=_NEEDED,
    ),
    _page(
        sources.OMNIGEN,
        Call("omnigen"),
        "9",
        card="a100-80gb",
        reason="failed: the pipeline needs torchvision, which is not installed",
    ),
    Figure(
        sources.OFFLOADED,
        Call("sd14", naive_unet(on_device), dtype="float16"),
        "5668",
        "titan-rtx",
        "shown",
        unit=MIB,
        name="`sd14`, plain attention",
    ),
    Figure(
        sources.CACHE_DIT,
        Call("flux", ("sequential_cpu_offload",)),
        "1",
        "l40s",
        "shown",
        measured_on="L20",
        reason="a rounded figure of an unnamed tool; tensors alone take 1.5 GiB",
    ),
    _torchao(
        Call("cogvideox-5b", ("fused_qkv_projections",)), "33.988", card="h100", reason=_OLDER_VAE
    ),
    _torchao(Call("cogvideox-2b"), "24.528", reason=_OLDER_VAE),
    _torchao(Call("cogvideox-2b", ("fused_qkv_projections",)), "25.171", reason=_OLDER_VAE),
    _torchao(Call("cogvideox-5b", on_device), "19.764", counter="loaded", name="`cogvideox-5b`"),
    _torchao(
        Call("cogvideox-5b", fused),
        "21.979",
        counter="loaded",
        name="`cogvideox-5b`, fused projections",
    ),
    _torchao(
        Call("cogvideox-2b", in_fp16(on_device)),
        "12.535",
        counter="loaded",
        name="`cogvideox-2b`, fp16",
    ),
    _torchao(
        Call("cogvideox-2b", in_fp16(fused)),
        "13.169",
        counter="loaded",
        name="`cogvideox-2b`, fp16, fused projections",
    ),
    _torchao(
        Call("cogvideox-2b", on_device),
        "12.55",
        counter="loaded",
        name="`cogvideox-2b`",
        reason=_BUFFERS,
    ),
    _latents("22.364", "loaded"),
    _latents("22.377", "loaded, reserved"),
    _latents("22.365", "held"),
    Figure(
        sources.INITIAL,
        Call("pixart-sigma", on_device, _FOUR, "bfloat16"),
        "10.212",
        "h100",
        "held",
        name="`pixart-sigma`, bf16, batch 4",
        measured_on=UNSTATED,
    ),
    Figure(
        sources.INITIAL,
        Call("pixart-sigma", on_device, (("batch", 8),), "bfloat16"),
        "10.213",
        "h100",
        "held",
        name="`pixart-sigma`, bf16, batch 8",
        measured_on=UNSTATED,
    ),
    _pascal(Call("sd14", ("fp16",)), "3519.1", reason=_PASCAL),
    _pascal(Call("sd14", ("model_cpu_offload",)), "2707.8", reason=_PASCAL),
    _pascal(Call("sd14", ("sequential_cpu_offload",)), "1463.6", reason=_PASCAL),
    _pascal(Call("sdxl", ("fp16",), size(512, 512)), "7663.1", reason=_NO_CORES),
    _pascal(Call("sdxl", ("model_cpu_offload",), size(512, 512)), "5472.6", reason=_PASCAL),
    _pascal(Call("sdxl", ("sequential_cpu_offload",), size(512, 512)), "777.3", reason=_NO_CORES),
    _pascal(Call("pixart-512", ("fp16",)), "13223.0", reason=_PASCAL),
    _pascal(
        Call("pixart-512", model_offload, dtype="float16"),
        "11034.9",
        name="`pixart-512`, fp16, model offload",
    ),
)
