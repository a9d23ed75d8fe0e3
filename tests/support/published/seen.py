"""The figures that were in the suite before the protocol was written."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tests.support.published import placing, scripts, sources
from tests.support.published.placing import fp8, fused, in_fp16, model_offload, on_device
from tests.support.published.records import GB, Call, Changes, Figure, Source

_LEAVES, _MODEL = ("sequential_cpu_offload",), ("model_cpu_offload",)
_HALF, _TILED_MODEL = ("fp16",), ("vae_tiling", "model_cpu_offload")
_FOUR: Changes = (("batch", 4),)
UNSTATED = "not stated"
OLDER_VAE = (
    "older VAEs of diffusers kept fewer frames: with that of 0.30.3 within 0.4 % "
    "(`python -m tests.support.published.older`)"
)
_OLD_SDXL = (
    "not found; the post's tiny VAE needs as much as its sliced one, so no VAE sets these peaks"
)


def size(width: int, height: int, frames: int = 0) -> Changes:
    """Changes of a call."""
    found = (("width", width), ("height", height))
    return (*found, ("frames", frames)) if frames else found


_POST = size(768, 512, 121)


def _hunyuan(source: Source, published: str, place: placing.Place, name: str) -> Figure:
    return Figure(
        source, Call("hunyuanvideo", place), published, "a100-80gb", name=f"`hunyuanvideo`, {name}"
    )


_torchao, _cogvideox = partial(Figure, sources.TORCHAO), partial(Figure, sources.COGVIDEOX)
_sdxl = partial(Figure, sources.SDXL, card="a100-40gb", reason=_OLD_SDXL)
_disk = partial(Figure, sources.DISK, card="h100", measured_on=UNSTATED)
_nightly = partial(Figure, sources.NIGHTLY, card="a100-80gb", measured_on=UNSTATED)

_QWEN_ALLOCATED = {
    ("decode", 512, 512): "1.274",
    ("decode", 768, 768): "2.563",
    ("decode", 832, 1248): "4.331",
    ("decode", 1024, 1024): "4.369",
    ("decode", 1088, 1920): "8.468",
    ("decode", 1280, 1280): "6.693",
    ("decode", 1536, 1024): "6.434",
    ("decode", 1536, 1536): "9.532",
    ("decode", 1792, 1792): "12.884",
    ("decode", 2048, 2048): "16.754",
    ("encode", 512, 512): "0.900",
    ("encode", 768, 768): "1.724",
    ("encode", 832, 1248): "2.854",
    ("encode", 1024, 1024): "2.879",
    ("encode", 1088, 1920): "5.498",
    ("encode", 1280, 1280): "4.364",
    ("encode", 1536, 1024): "4.199",
    ("encode", 1536, 1536): "6.179",
}
_QWEN_RISE = {
    ("decode", 512, 512): "1.311",
    ("decode", 768, 768): "2.992",
    ("decode", 832, 1248): "5.211",
    ("decode", 1024, 1024): "5.254",
    ("decode", 1088, 1920): "10.408",
    ("decode", 1280, 1280): "8.188",
    ("decode", 1536, 1024): "7.857",
    ("decode", 1536, 1536): "11.736",
    ("decode", 1792, 1792): "15.949",
    ("decode", 2048, 2048): "20.799",
    ("encode", 512, 512): "0.711",
    ("encode", 768, 768): "1.594",
    ("encode", 832, 1248): "2.824",
    ("encode", 1024, 1024): "2.848",
    ("encode", 1088, 1920): "5.672",
    ("encode", 1280, 1280): "4.459",
    ("encode", 1536, 1024): "4.281",
    ("encode", 1536, 1536): "6.396",
}


def _qwen() -> list[Figure]:
    """Allocated and reserved of the same calls."""
    found = []
    for (way, height, width), allocated in _QWEN_ALLOCATED.items():
        run = scripts.qwen_vae("decode" if way == "decode" else "encode", height, width)
        name = f"VAE of Qwen-Image fp16, {way} {height}x{width}"
        made = Figure(sources.INVOKE, run, allocated, "rtx-4090", name=name)
        rise = _QWEN_RISE[way, height, width]
        reason = "not found: the allocator's segments of an encoder" if way == "encode" else ""
        found += [made, replace(made, published=rise, counter="rise", reason=reason)]
    return found


_FIGURES = (
    _torchao(Call("flux"), "33.851", "h100"),
    _torchao(Call("flux", changes=_FOUR), "39.49", "h100"),
    _torchao(Call("flux", changes=(("batch", 8),)), "47.509", "h100"),
    _torchao(Call("flux", changes=(("batch", 16),)), "61.548", "h100", reason="not found"),
    _disk(Call("flux", _MODEL), "22.64"),
    _disk(Call("flux", _LEAVES), "2.41"),
    _disk(
        Call("flux", placing.transformer_by_blocks),
        "11.68",
        name="`flux`, transformer by groups of one block on a stream",
    ),
    Figure(
        sources.QUANTIZER,
        scripts.flux_latents,
        "22.633",
        "h100",
        name="Flux bf16 768x768, transformer and VAE, up to latents",
        measured_on=UNSTATED,
    ),
    Figure(
        sources.QUANTIZER,
        scripts.flux_latents,
        "23.018",
        "h100",
        "reserved",
        name="Flux bf16 768x768, transformer and VAE, up to latents",
        measured_on=UNSTATED,
    ),
    Figure(sources.QUANTIZATION, Call("flux"), "36.166", "h100", "reserved"),
    Figure(
        sources.QUANTIZATION,
        Call("flux", ("layerwise_casting",)),
        "28.451",
        "h100",
        "reserved",
        reason="not found",
    ),
    Figure(
        sources.STREAM,
        Call("flux", ("group_offload_stream",), size(576, 1024)),
        "1.6688",
        "h100",
        measured_on=UNSTATED,
        reason="of the source neither the kind of groups nor the size is certain",
    ),
    Figure(
        sources.CACHE_DIT,
        Call("flux"),
        "38",
        "l40s",
        "shown",
        measured_on="L20",
        reason="a whole number of an unnamed tool",
    ),
    Figure(
        sources.CACHE_DIT,
        Call("flux", _MODEL),
        "25",
        "l40s",
        "shown",
        measured_on="L20",
        reason="a whole number of an unnamed tool",
    ),
    Figure(sources.FLUX2, Call("flux2", _MODEL), "62", "h100", "shown"),
    Figure(sources.FLUX2, Call("flux2"), "80", "h200", "shown", "more than", measured_on=UNSTATED),
    Figure(sources.QWEN, Call("qwen-image", changes=size(2048, 2048)), "75", "a100-80gb", "shown"),
    Figure(
        sources.WAN,
        Call("wan-1.3b", _MODEL, (("frames", 33),)),
        "11",
        "a100-80gb",
        "shown",
        measured_on=UNSTATED,
    ),
    Figure(sources.SD3, Call("sd3", _HALF), "18.765", "a100-80gb"),
    Figure(sources.SD3, Call("sd3", _MODEL), "12.0645", "a100-80gb"),
    Figure(sources.SD3, Call("sd3-without-t5", _MODEL), "4.266", "a100-80gb"),
    Figure(sources.LOADING, Call("sdxl", _HALF), "10.47", "a100-40gb", measured_on=UNSTATED),
    _sdxl(Call("sdxl", _HALF, _FOUR), "21.72"),
    _sdxl(Call("sdxl", _MODEL, _FOUR), "20.21"),
    _sdxl(Call("sdxl", _LEAVES, _FOUR), "19.91"),
    _sdxl(Call("sdxl", ("fp16", "vae_slicing"), _FOUR), "15.4"),
    _sdxl(Call("sdxl", ("vae_slicing", *_LEAVES), _FOUR), "11.47"),
    _sdxl(Call("sdxl", placing.tiny_vae, _FOUR), "15.48", name="`sdxl`, tiny VAE, batch 4"),
    _torchao(Call("cogvideox-5b"), "31.746", "a100-80gb", reason=OLDER_VAE),
    _torchao(
        Call("cogvideox-5b", ("fused_qkv_projections",)), "33.96", "a100-80gb", reason=OLDER_VAE
    ),
    _torchao(
        Call("cogvideox-2b", in_fp16(on_device)),
        "24.511",
        "a100-80gb",
        name="`cogvideox-2b`, fp16",
        reason=OLDER_VAE,
    ),
    _torchao(
        Call("cogvideox-2b", in_fp16(fused)),
        "25.142",
        "a100-80gb",
        name="`cogvideox-2b`, fp16, fused projections",
        reason=OLDER_VAE,
    ),
    _torchao(Call("cogvideox-5b", ("vae_tiling", *_LEAVES)), "4.8", "a100-80gb", reason=OLDER_VAE),
    _cogvideox(Call("cogvideox-5b"), "33", "a100-80gb", "shown", reason=OLDER_VAE),
    _cogvideox(Call("cogvideox-5b", _MODEL), "19", "a100-80gb", "shown", reason=OLDER_VAE),
    _cogvideox(Call("cogvideox-5b", _LEAVES), "4", "a100-80gb", "shown", reason=OLDER_VAE),
    _cogvideox(Call("cogvideox-5b", _TILED_MODEL), "11", "a100-80gb", "shown", reason=OLDER_VAE),
    Figure(
        sources.MEMORY,
        Call("cogvideox-5b", placing.by_kind),
        "14.79",
        "a100-80gb",
        name="`cogvideox-5b`, groups by leaves and blocks",
        measured_on=UNSTATED,
    ),
    Figure(sources.VIDEO, Call("cogvideox1.5-5b", changes=_POST), "36.51", "a100-80gb"),
    Figure(sources.VIDEO, Call("ltx-video"), "17.75", "a100-80gb"),
    _hunyuan(sources.VIDEO, "60.10", on_device, "bf16"),
    _hunyuan(sources.VIDEO, "43.58", placing.vae_tiling, "VAE tiling"),
    _hunyuan(sources.VIDEO, "28.87", model_offload, "model offload"),
    _hunyuan(sources.VIDEO_FP8, "51.70", fp8(on_device), "fp8 layerwise"),
    _hunyuan(sources.VIDEO_FP8, "35.17", fp8(placing.vae_tiling), "fp8 layerwise, VAE tiling"),
    _hunyuan(sources.VIDEO_FP8, "21.99", fp8(model_offload), "fp8 layerwise, model offload"),
    *_qwen(),
    Figure(
        sources.ENCODER,
        scripts.cogvideox_encode(),
        "12.45",
        "h100",
        name="VAE of CogVideoX bf16, encode",
        measured_on=UNSTATED,
        reason=OLDER_VAE,
    ),
    Figure(
        sources.ENCODER,
        scripts.cogvideox_encode(tiled=True),
        "3.59",
        "h100",
        name="VAE of CogVideoX bf16, encode, VAE tiling",
        measured_on=UNSTATED,
        reason=OLDER_VAE,
    ),
    _nightly(scripts.denoiser("flux", "bf16"), "22.61 to 22.64", name="denoiser of Flux, bf16"),
    _nightly(scripts.denoiser("flux", "fp8"), "22.18 to 22.19", name="denoiser of Flux, fp8"),
    _nightly(scripts.denoiser("flux", "leaves"), "0.53 to 0.56", name="denoiser of Flux, leaves"),
    _nightly(scripts.denoiser("sdxl", "bf16"), "5.05", name="denoiser of SDXL, bf16"),
    _nightly(scripts.denoiser("sdxl", "fp8"), "4.89", name="denoiser of SDXL, fp8"),
    Figure(
        sources.MEMORY,
        Call("sd15-4k", ("vae_tiling",)),
        "8",
        "titan-rtx",
        bound="at most",
        unit=GB,
        measured_on=UNSTATED,
    ),
    Figure(
        sources.MEMORY,
        Call("sd15", _LEAVES),
        "3",
        "titan-rtx",
        bound="at most",
        unit=GB,
        measured_on=UNSTATED,
    ),
    Figure(
        sources.SPEED,
        Call("sd15", ("attention_slicing",)),
        "3.2",
        "titan-rtx",
        bound="at most",
        unit=GB,
        measured_on=UNSTATED,
    ),
    _torchao(Call("flux", on_device), "31.438", "h100", "loaded", name="`flux`"),
    Figure(
        sources.QUANTIZATION,
        Call("flux", on_device),
        "31.447",
        "h100",
        "loaded, reserved",
        name="`flux`",
    ),
    Figure(
        sources.QUANTIZATION,
        Call("flux", fp8(on_device)),
        "23.682",
        "h100",
        "loaded, reserved",
        name="`flux`, fp8 layerwise",
    ),
    Figure(
        sources.QUANTO,
        Call("pixart-sigma", on_device, dtype="float16"),
        "12.086",
        "h100",
        "held",
        name="`pixart-sigma`, fp16",
    ),
    Figure(
        sources.QUANTO,
        Call("pixart-sigma", on_device, _FOUR, "float16"),
        "12.087",
        "h100",
        "held",
        name="`pixart-sigma`, fp16, batch 4",
    ),
    Figure(
        sources.QUANTO,
        Call("sd3", on_device, dtype="float16"),
        "16.403",
        "h100",
        "held",
        name="`sd3`, fp16",
    ),
)
SEEN = tuple(replace(figure, seen=True) for figure in _FIGURES)
