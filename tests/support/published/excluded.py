"""What was found and is not compared, each by a rule of the protocol."""

from __future__ import annotations

from tests.support.published.records import Excluded

_DIFFUSERS = "https://github.com/huggingface/diffusers"
_DOCS = f"{_DIFFUSERS}/blob/58eb52c080/docs/source/en/api/pipelines"
_P100 = "https://github.com/gperdrizet/unit-6-assignments"

_CODE, _SIZE = "other code than diffusers' pipelines", "its size is not to be had"
_QUANTIZED, _GPUS = "quantized by a library", "several GPUs"

EXCLUDED = (
    Excluded(
        "ConsisID, 10 figures",
        f"{_DOCS}/consisid.md",
        "models of other libraries that find faces share the card",
    ),
    Excluded("Latte and CogVideoX with caches", f"{_DIFFUSERS}/pull/10163", _SIZE),
    Excluded("AnimateDiff in fp16 and fp8, 6 figures", f"{_DIFFUSERS}/pull/9177", _SIZE),
    Excluded("OmniGen with two images, 3 figures", f"{_DOCS}/omnigen.md", _SIZE),
    Excluded(
        "slicing and tiling of a VAE", f"{_DIFFUSERS}/pull/9342", "its figures are not to be had"
    ),
    Excluded(
        "Wan and SDXL by leaves of the nightly benchmark",
        "https://huggingface.co/datasets/diffusers/benchmarks",
        "their figures are not to be had",
    ),
    Excluded("HunyuanVideo's tiles of frames", f"{_DIFFUSERS}/pull/10295", "training"),
    Excluded("VAE of Stable Diffusion 2.1", f"{_DIFFUSERS}/issues/10350", "training"),
    Excluded("Flux with nf4", f"{_DIFFUSERS}/pull/9840", _QUANTIZED),
    Excluded("HunyuanVideo, some 14 GB", f"{_DOCS}/hunyuan_video.md", _QUANTIZED),
    Excluded(
        "VAEs under cudaMallocAsync, 3 figures",
        "https://github.com/invoke-ai/InvokeAI/pull/7674",
        "another allocator",
    ),
    Excluded(
        "VAE of FLUX.2 on Radeon",
        "https://github.com/invoke-ai/InvokeAI/pull/9519",
        "no CUDA card",
    ),
    Excluded("Flux at 2048x2048", "https://github.com/vipshop/cache-dit/pull/645", _GPUS),
    Excluded(
        "FLUX.2 and LTX-2 on L20, 10 figures and reports",
        "https://github.com/vipshop/cache-dit/blob/main/docs/user_guide/HYBRID_PARALLEL.md",
        _GPUS,
    ),
    Excluded(
        "Lens on an H100, 4 figures",
        "https://huggingface.co/WaveCut/Lens-Turbo-SDNQ-uint4-static",
        "a pipeline that the installed diffusers does not have",
    ),
    Excluded(
        "Stable Video Diffusion on a V100",
        "https://github.com/wuyushuwys/FMEDiffusion/issues/2",
        "the same call as another figure, on an architecture without a profile",
    ),
    Excluded(
        "HunyuanVideo on 48 GB, 2 reports",
        "https://github.com/xorbitsai/inference/pull/2721",
        "whether the VAE tiles is not stated",
    ),
    Excluded(
        "Wan I2V at 720p on 80 GB",
        f"{_DIFFUSERS}/issues/11289",
        "with ParaAttention's cache",
    ),
    Excluded(
        "Flux on an RTX 4070", "https://github.com/black-forest-labs/flux/issues/70", "Windows"
    ),
    Excluded("CogView3-Plus on 16 GB", "https://github.com/zai-org/CogView4/issues/16", "Windows"),
    Excluded("Flux on an L4", "https://github.com/black-forest-labs/flux/issues/120", _CODE),
    Excluded(
        "Flux by regions on 24 GB",
        "https://github.com/instantX-research/Regional-Prompting-FLUX/issues/13",
        _CODE,
    ),
    Excluded(
        "Wan 14B on an A6000",
        "https://github.com/Wan-Video/Wan2.1/issues/319",
        "a card that others use",
    ),
    Excluded(
        "Qwen-Image-Layered on an L40S",
        "https://github.com/QwenLM/Qwen-Image-Layered/issues/22",
        "size not stated",
    ),
    Excluded(
        "ERNIE-Image on an RTX 4090",
        "https://github.com/baidu/ERNIE-Image/issues/4",
        "its configuration was not found",
    ),
    Excluded(
        "Flux and SD3.5 large by sequential offload on a P100",
        _P100,
        "memory of the run before, which had failed, was still allocated",
    ),
)
