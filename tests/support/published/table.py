"""The published figures, by source."""

from __future__ import annotations

from tests.support.published import images, vaes, videos
from tests.support.published.figures import Figure
from tests.support.published.placing import (
    fp8,
    fused,
    group_offload,
    model_offload,
    on_device,
    sequential_offload,
    vae_slicing,
    vae_slicing_sequential_offload,
    vae_tiling,
)

_REPOSITORY = "https://github.com/huggingface/diffusers/pull"
TORCHAO = (
    "[diffusers-torchao](https://github.com/sayakpaul/diffusers-torchao/blob/"
    "9b9f2383dccb8eb73a4c6a8ffe736dd9610c26d2/README.md), torch and diffusers of autumn 2024"
)
DISK = f"[diffusers #11682]({_REPOSITORY}/11682), June 2025"
QUANTIZER = f"[diffusers #10009]({_REPOSITORY}/10009), end of 2024"
ENCODER = f"[diffusers #9333]({_REPOSITORY}/9333), September 2024"
SD3 = "[blog 'sd3'](https://huggingface.co/blog/sd3), diffusers 0.29, torch 2.3"
QUANTO = "[blog 'quanto-diffusers'](https://huggingface.co/blog/quanto-diffusers), torch 2.4"
QUANTIZATION = (
    "[blog 'diffusers-quantization'](https://huggingface.co/blog/diffusers-quantization), May 2025"
)
SDXL = (
    "[blog 'simple_sdxl_optimizations']"
    "(https://huggingface.co/blog/simple_sdxl_optimizations), October 2023"
)
VIDEO = "[blog 'video_gen'](https://huggingface.co/blog/video_gen), January 2025"
VIDEO_FP8 = "[blog #2592](https://github.com/huggingface/blog/pull/2592), January 2025"
INVOKE = "[InvokeAI #9305](https://github.com/invoke-ai/InvokeAI/pull/9305), torch 2.7.1"

_A100, _H100 = ("A100-80GB", "a100-80gb"), ("H100", "h100")
_A100_40, _RTX = ("A100-40GB", "a100-40gb"), ("RTX 4090", "rtx-4090")
_UNKNOWN = ("not stated", "h100")
_FLUX = "Flux bf16 1024x1024"
_COGVIDEOX = "480x720, 49 frames"
_SDXL = "SDXL fp16 1024x1024, batch 4"
_POST = "512x768, 121 frames"
_HUNYUAN = f"HunyuanVideo bf16 {_POST}"
_ENCODE = f"VAE of CogVideoX bf16, encode, presumably {_COGVIDEOX}"
_LATENTS = "Flux bf16 768x768, transformer and VAE, up to latents"

FIGURES = (
    Figure(f"{_FLUX}, batch 1", *_H100, 33.851, TORCHAO, images.flux_run(), seen=True),
    Figure(f"{_FLUX}, batch 4", *_H100, 39.49, TORCHAO, images.flux_run(batch=4)),
    Figure(f"{_FLUX}, batch 8", *_H100, 47.509, TORCHAO, images.flux_run(batch=8)),
    Figure(f"{_FLUX}, batch 16", *_H100, 61.548, TORCHAO, images.flux_run(batch=16)),
    Figure(f"{_FLUX}, model offload", *_UNKNOWN, 22.64, DISK, images.flux_run(model_offload)),
    Figure(
        f"{_FLUX}, sequential offload", *_UNKNOWN, 2.41, DISK, images.flux_run(sequential_offload)
    ),
    Figure(
        f"{_FLUX}, group offload of the transformer",
        *_UNKNOWN,
        11.68,
        DISK,
        images.flux_run(group_offload),
    ),
    Figure(_LATENTS, *_UNKNOWN, 22.633, QUANTIZER, images.flux_latents),
    Figure(_LATENTS, *_UNKNOWN, 23.018, QUANTIZER, images.flux_latents, "reserved"),
    Figure(
        f"{_FLUX}, fp8 layerwise",
        *_H100,
        28.451,
        QUANTIZATION,
        images.flux_run(fp8(on_device)),
        "reserved",
    ),
    Figure(
        "SD3 fp16 1024x1024 without T5, model offload",
        *_A100,
        4.266,
        SD3,
        images.sd3_without_t5(model_offload),
    ),
    Figure("PixArt-Sigma fp16 1024x1024, batch 1", *_H100, 12.086, QUANTO, images.pixart_run(1)),
    Figure("PixArt-Sigma fp16 1024x1024, batch 4", *_H100, 12.087, QUANTO, images.pixart_run(4)),
    Figure(f"{_SDXL}, VAE slicing", *_A100_40, 15.4, SDXL, images.sdxl_run(vae_slicing, 4)),
    Figure(
        f"{_SDXL}, VAE slicing, sequential offload",
        *_A100_40,
        11.47,
        SDXL,
        images.sdxl_run(vae_slicing_sequential_offload, 4),
    ),
    Figure(
        f"{_SDXL}, tiny VAE",
        *_A100_40,
        15.48,
        SDXL,
        images.sdxl_run(on_device, 4, tiny_vae=True),
    ),
    Figure(f"CogVideoX-5b bf16 {_COGVIDEOX}", *_A100, 31.746, TORCHAO, videos.cogvideox_5b()),
    Figure(
        f"CogVideoX-5b bf16 {_COGVIDEOX}, fused projections",
        *_A100,
        33.96,
        TORCHAO,
        videos.cogvideox_5b(fused),
    ),
    Figure(f"CogVideoX-2b fp16 {_COGVIDEOX}", *_A100, 24.511, TORCHAO, videos.cogvideox_2b()),
    Figure(
        f"CogVideoX-2b fp16 {_COGVIDEOX}, fused projections",
        *_A100,
        25.142,
        TORCHAO,
        videos.cogvideox_2b(fused),
    ),
    Figure(f"CogVideoX1.5-5B bf16 {_POST}", *_A100, 36.51, VIDEO, videos.cogvideox_15),
    Figure(f"LTX-Video bf16 {_POST}", *_A100, 17.75, VIDEO, videos.ltx),
    Figure(_HUNYUAN, *_A100, 60.1, VIDEO, videos.hunyuan(on_device)),
    Figure(f"{_HUNYUAN}, VAE tiling", *_A100, 43.58, VIDEO, videos.hunyuan(vae_tiling)),
    Figure(f"{_HUNYUAN}, model offload", *_A100, 28.87, VIDEO, videos.hunyuan(model_offload)),
    Figure(f"{_HUNYUAN}, fp8 layerwise", *_A100, 51.7, VIDEO_FP8, videos.hunyuan(fp8(on_device))),
    Figure(
        f"{_HUNYUAN}, fp8 layerwise, VAE tiling",
        *_A100,
        35.17,
        VIDEO_FP8,
        videos.hunyuan(fp8(vae_tiling)),
    ),
    Figure(
        f"{_HUNYUAN}, fp8 layerwise, model offload",
        *_A100,
        21.99,
        VIDEO_FP8,
        videos.hunyuan(fp8(model_offload)),
    ),
    *(
        Figure(
            f"VAE of Qwen-Image fp16, decode {height}x{width}",
            *_RTX,
            published,
            INVOKE,
            vaes.qwen("decode", height, width),
        )
        for height, width, published in (
            (512, 512, 1.274),
            (1024, 1024, 4.369),
            (1088, 1920, 8.468),
            (2048, 2048, 16.754),
        )
    ),
    *(
        Figure(
            f"VAE of Qwen-Image fp16, encode {height}x{width}",
            *_RTX,
            published,
            INVOKE,
            vaes.qwen("encode", height, width),
        )
        for height, width, published in ((512, 512, 0.9), (1024, 1024, 2.879), (1536, 1536, 6.179))
    ),
    Figure(
        _ENCODE,
        *_UNKNOWN,
        12.45,
        ENCODER,
        vaes.cogvideox_encode(),
    ),
    Figure(f"{_ENCODE}, VAE tiling", *_UNKNOWN, 3.59, ENCODER, vaes.cogvideox_encode(tiled=True)),
)
