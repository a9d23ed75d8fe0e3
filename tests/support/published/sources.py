"""Where the figures and reports were published."""

from __future__ import annotations

from tests.support.published.records import Source

_DIFFUSERS = "https://github.com/huggingface/diffusers"
_PULL = f"{_DIFFUSERS}/pull"
_ISSUE = f"{_DIFFUSERS}/issues"
_DOCS = f"{_DIFFUSERS}/blob/main/docs/source/en"
_PIPELINES = f"{_DIFFUSERS}/blob/58eb52c080/docs/source/en/api/pipelines"
_BLOG = "https://huggingface.co/blog"
_TORCHAO = "https://github.com/sayakpaul/diffusers-torchao"
_MAIN_2026 = "diffusers main, August 2026"

# Those of the figures that the suite had before the protocol.
TORCHAO = Source(
    "diffusers-torchao",
    f"{_TORCHAO}/blob/9b9f2383dccb8eb73a4c6a8ffe736dd9610c26d2/README.md",
    "torch and diffusers of autumn 2024",
)
DISK = Source("diffusers #11682", f"{_PULL}/11682", "June 2025")
QUANTIZER = Source("diffusers #10009", f"{_PULL}/10009", "end of 2024")
ENCODER = Source("diffusers #9333", f"{_PULL}/9333", "September 2024")
STREAM = Source("diffusers #11081", f"{_PULL}/11081", "March 2025")
QWEN = Source("diffusers #12900", f"{_ISSUE}/12900", "torch 2.8")
SD3 = Source("blog 'sd3'", f"{_BLOG}/sd3", "diffusers 0.29, torch 2.3")
QUANTO = Source("blog 'quanto-diffusers'", f"{_BLOG}/quanto-diffusers", "torch 2.4")
QUANTIZATION = Source(
    "blog 'diffusers-quantization'", f"{_BLOG}/diffusers-quantization", "May 2025"
)
SDXL = Source(
    "blog 'simple_sdxl_optimizations'", f"{_BLOG}/simple_sdxl_optimizations", "October 2023"
)
VIDEO = Source("blog 'video_gen'", f"{_BLOG}/video_gen", "January 2025")
VIDEO_FP8 = Source("blog #2592", "https://github.com/huggingface/blog/pull/2592", "January 2025")
FLUX2 = Source("blog 'flux-2'", f"{_BLOG}/flux-2", "November 2025")
INVOKE = Source("InvokeAI #9305", "https://github.com/invoke-ai/InvokeAI/pull/9305", "torch 2.7.1")
CACHE_DIT = Source(
    "cache-dit",
    "https://github.com/vipshop/cache-dit/blob/f86744af/docs/user_guide/OFFLOAD.md",
    "2026",
)
WAN = Source(
    "docs 'wan', older",
    f"{_DIFFUSERS}/blob/3435d3ebb96649665e09c98b/docs/source/en/api/pipelines/wan.md",
    "2025",
)
COGVIDEOX = Source("docs 'cogvideox'", f"{_DOCS}/api/pipelines/cogvideox.md", "2024")
LOADING = Source("docs 'loading'", f"{_DOCS}/using-diffusers/loading.md", "2025")
MEMORY = Source("docs 'memory'", f"{_DOCS}/optimization/memory.md", "2024")
SPEED = Source("docs 'Memory and speed'", f"{_DIFFUSERS}/tree/v0.7.0/docs/source", "2022")
NIGHTLY = Source(
    "diffusers' nightly benchmark", "https://huggingface.co/datasets/diffusers/benchmarks", "2025"
)

# Those of the figures that were found for this page.
INITIAL = Source("diffusers-torchao #2", f"{_TORCHAO}/issues/2", "August 2024")
LAMBDA = Source(
    "lambda-diffusers",
    "https://github.com/LambdaLabsML/lambda-diffusers/blob/main/benchmarks/benchmark_no_xformers.csv",
    "diffusers 0.11.0, torch 1.13",
)
LAMBDA_MIG = Source(
    "lambda-diffusers",
    "https://github.com/LambdaLabsML/lambda-diffusers/blob/main/benchmarks/benchmark_H100_MIG.csv",
    "diffusers 0.11.0, torch 1.13",
)
TESTS = Source(
    "diffusers' slow tests",
    f"{_DIFFUSERS}/blob/58eb52c080/tests/pipelines/stable_diffusion/test_stable_diffusion.py",
    _MAIN_2026,
)
COGVIEW4 = Source(
    "model card of CogView4-6B", "https://huggingface.co/THUDM/CogView4-6B", "March 2025"
)
FME = Source(
    "FMEDiffusion", "https://github.com/wuyushuwys/FMEDiffusion", "torch 2.4.1, December 2024"
)
SVD = Source("docs 'svd'", f"{_PIPELINES}/stable_diffusion/svd.md", _MAIN_2026)
MOCHI = Source("docs 'mochi'", f"{_PIPELINES}/mochi.md", _MAIN_2026)
WAN_NOW = Source("docs 'wan'", f"{_PIPELINES}/wan.md", _MAIN_2026)
LTX = Source("docs 'ltx_video'", f"{_PIPELINES}/ltx_video.md", _MAIN_2026)
OMNIGEN = Source("docs 'omnigen'", f"{_PIPELINES}/omnigen.md", _MAIN_2026)
FLUX = Source("docs 'flux'", f"{_PIPELINES}/flux.md", _MAIN_2026)
OFFLOADED = Source("diffusers #1934", f"{_ISSUE}/1934", "diffusers 0.11.1, torch 1.10.1")
PASCAL = Source(
    "gperdrizet/unit-6-assignments",
    "https://github.com/gperdrizet/unit-6-assignments/blob/4a8cda4582e48087070fbb555f04b855ea2e0bee"
    "/docs/data/p100/benchmark_results.json",
    "2026",
)

# Those of reports alone.
FILL = Source("diffusers #11922", f"{_ISSUE}/11922", "July 2025")
REPLICATE = Source(
    "cog-flux-schnell #4", "https://github.com/replicate/cog-flux-schnell/pull/4", "2024"
)
BLACK_FOREST = Source(
    "black-forest-labs/flux #67", "https://github.com/black-forest-labs/flux/issues/67", "2024"
)
PADDLE = Source(
    "PaddleMIX #1188", "https://github.com/PaddlePaddle/PaddleMIX/issues/1188", "April 2025"
)
OMNI = Source("vllm-omni #1629", "https://github.com/vllm-project/vllm-omni/pull/1629", "2026")
MILIMO = Source("milimovideo #6", "https://github.com/mainza-ai/milimovideo/issues/6", "2026")
XDIT = Source(
    "xDiT",
    "https://github.com/xdit-project/xDiT/blob/main/docs/performance/flux.md",
    "2024",
)
HUNYUAN = Source(
    "HunyuanVideo #215",
    "https://github.com/Tencent-Hunyuan/HunyuanVideo/issues/215",
    "February 2025",
)
WAN22 = Source("Wan2.2 #42", "https://github.com/Wan-Video/Wan2.2/issues/42", "July 2025")
ODYSSEUS = Source(
    "odysseus #5338", "https://github.com/odysseus-dev/odysseus/issues/5338", "July 2026"
)
COGVIDEO = Source("CogVideo", "https://github.com/zai-org/CogVideo", "August 2024")


def cogvideo(number: int, software: str) -> Source:
    """An issue of CogVideo."""
    return Source(
        f"CogVideo #{number}", f"https://github.com/zai-org/CogVideo/issues/{number}", software
    )
