"""`python -m tests.support.published.fitting` prints the tables of docs/fit.md, some five minutes.

What others published of a whole call, and what people report to fit a card or not, beside what
`nox -s fit` finds of the same call.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.measuring.trial import try_configuration
from fixtures.records.fit import MAX_CONTEXT_BYTES, Configuration, Fit
from fixtures.records.units import GIB
from fixtures.techniques import CATALOGUE
from fixtures.workloads import WORKLOADS, Workload, cogvideox
from fixtures.workloads.calls import Drawing
from tests.support.published import videos

DIFFUSERS = "https://github.com/huggingface/diffusers"
TORCHAO = "https://github.com/sayakpaul/diffusers-torchao"
POST = "https://huggingface.co/blog/video_gen"
FLUX2 = "https://huggingface.co/blog/flux-2"
QUANTIZATION = "https://huggingface.co/blog/diffusers-quantization"
CACHE_DIT = "https://github.com/vipshop/cache-dit/blob/f86744af/docs/user_guide/OFFLOAD.md"
SD3 = "https://huggingface.co/blog/sd3"
COGVIDEO = "https://github.com/zai-org/CogVideo/issues"


@dataclass(frozen=True)
class Run:
    """A call of a workload with techniques on a card; `changes` are those of the call."""

    workload: str
    techniques: tuple[str, ...]
    card: str
    changes: tuple[tuple[str, int], ...] = ()

    def way(self) -> Configuration:
        """What it takes."""
        workload = _workloads()[self.workload]
        changes: dict[str, Any] = dict(self.changes)
        changed = replace(workload, call=replace(workload.call, **changes))
        device = SimulatedDevice(self.card, taken_bytes=MAX_CONTEXT_BYTES)
        return try_configuration(changed, [CATALOGUE[one] for one in self.techniques], device)

    @property
    def words(self) -> str:
        """The run in a cell of a table."""
        size = ", ".join(f"{name} {value}" for name, value in self.changes)
        techniques = " + ".join(f"`{one}`" for one in self.techniques)
        return f"`{self.workload}`{', ' + size if size else ''} | {techniques} | {self.card}"


@dataclass(frozen=True)
class Peak:
    """A published peak in GiB, and which of ours it is to be compared with.

    `shown` is what the driver's tools show: reserved memory, and a context, taken for 0.45 GiB;
    `at least` is a bound of that.
    """

    run: Run
    published: float
    source: str
    counter: Literal["allocated", "reserved", "shown", "at least"] = "allocated"


def _workloads() -> dict[str, Workload]:
    """Those of the suite, and one that only these tables have."""
    first = WORKLOADS["cogvideox-5b"]
    source = replace(cogvideox.SOURCE, configs={**cogvideox.SOURCE.configs, **videos.COGVIDEOX_15})
    call = replace(first.call, width=1360, height=768, frames=81)
    caller = Drawing(_pairs_of_frames, films=True, more={"max_sequence_length": cogvideox.TOKENS})
    return {
        **WORKLOADS,
        "cogvideox1.5-5b": replace(
            first, name="cogvideox1.5-5b", source=source, call=call, caller=caller
        ),
    }


def _pairs_of_frames(pipeline: Any, batch: int, frames: int, *size: int) -> tuple[int, ...]:
    """Latents of CogVideoX 1.5, whose pipeline adds a frame where there is an odd number."""
    first, count, *rest = cogvideox.frames_first(pipeline, batch, frames, *size)
    return (first, count + count % 2, *rest)


def _size(width: int, height: int, frames: int = 0) -> tuple[tuple[str, int], ...]:
    """Changes of a call."""
    found = (("width", width), ("height", height))
    return (*found, ("frames", frames)) if frames else found


_NONE, _HALF, _MODEL = ("bf16",), ("fp16",), ("model_cpu_offload",)
_LEAVES, _TILED_MODEL = ("sequential_cpu_offload",), ("vae_tiling", "model_cpu_offload")
_POST = _size(768, 512, 121)
_PAGE = f"{DIFFUSERS}/blob/3435d3ebb96649665e09c98b/docs/source/en/api/pipelines/wan.md"
_COGVIDEOX = f"{DIFFUSERS}/blob/main/docs/source/en/api/pipelines/cogvideox.md"
_LOADING = f"{DIFFUSERS}/blob/main/docs/source/en/using-diffusers/loading.md"
PEAKS = (
    Peak(Run("flux", _NONE, "h100"), 33.851, TORCHAO),
    Peak(Run("flux", _NONE, "h100", (("batch", 4),)), 39.49, TORCHAO),
    Peak(Run("flux", _NONE, "h100", (("batch", 8),)), 47.509, TORCHAO),
    Peak(Run("flux", _NONE, "h100"), 36.166, QUANTIZATION, "reserved"),
    Peak(Run("flux", ("layerwise_casting",), "h100"), 28.451, QUANTIZATION, "reserved"),
    Peak(Run("flux", _MODEL, "h100"), 22.64, f"{DIFFUSERS}/pull/11682"),
    Peak(Run("flux", _LEAVES, "h100"), 2.41, f"{DIFFUSERS}/pull/11682"),
    Peak(
        Run("flux", ("group_offload_stream",), "h100", _size(576, 1024)),
        1.6688,
        f"{DIFFUSERS}/pull/11081",
    ),
    Peak(Run("flux", _NONE, "l40s"), 38, CACHE_DIT, "shown"),
    Peak(Run("flux", _MODEL, "l40s"), 25, CACHE_DIT, "shown"),
    Peak(Run("flux2", _MODEL, "h100"), 62, FLUX2, "shown"),
    Peak(Run("flux2", _NONE, "h200"), 80, FLUX2, "at least"),
    Peak(
        Run("qwen-image", _NONE, "a100-80gb", _size(2048, 2048)),
        75,
        f"{DIFFUSERS}/issues/12900",
        "shown",
    ),
    Peak(Run("wan-1.3b", _MODEL, "a100-80gb", (("frames", 33),)), 11, _PAGE, "shown"),
    Peak(Run("sd3", _HALF, "a100-80gb"), 18.765, SD3),
    Peak(Run("sd3", _MODEL, "a100-80gb"), 12.0645, SD3),
    Peak(Run("cogvideox-5b", _NONE, "a100-80gb"), 31.746, TORCHAO),
    Peak(Run("cogvideox-5b", _NONE, "a100-80gb"), 33, _COGVIDEOX, "shown"),
    Peak(Run("cogvideox-5b", _MODEL, "a100-80gb"), 19, _COGVIDEOX, "shown"),
    Peak(Run("cogvideox-5b", _LEAVES, "a100-80gb"), 4, _COGVIDEOX, "shown"),
    Peak(Run("cogvideox-5b", _TILED_MODEL, "a100-80gb"), 11, _COGVIDEOX, "shown"),
    Peak(
        Run("cogvideox-5b", ("vae_tiling", *_LEAVES), "a100-80gb"),
        4.8,
        TORCHAO,
    ),
    Peak(Run("cogvideox1.5-5b", _NONE, "a100-80gb", _POST), 36.51, POST),
    Peak(
        Run("pixart-sigma", _HALF, "h100"), 12.086, "https://huggingface.co/blog/quanto-diffusers"
    ),
    Peak(Run("sdxl", _HALF, "a100-40gb"), 10.47, _LOADING),
)


@dataclass(frozen=True)
class Report:
    """What somebody reports of a run on a card."""

    run: Run
    fits: bool
    source: str


REPORTS = (
    Report(Run("flux", _MODEL, "rtx-4090"), True, f"{DIFFUSERS}/issues/11922"),
    Report(
        Run("flux", _MODEL, "rtx-4090"),
        False,
        "https://github.com/replicate/cog-flux-schnell/pull/4",
    ),
    Report(
        Run("flux", _LEAVES, "rtx-4090"),
        True,
        "https://github.com/replicate/cog-flux-schnell/pull/4",
    ),
    Report(
        Run("flux", _LEAVES, "rtx-3060", _size(1920, 1080)),
        True,
        "https://github.com/black-forest-labs/flux/issues/67",
    ),
    Report(
        Run("flux", _MODEL, "a100-40gb"),
        True,
        "https://github.com/PaddlePaddle/PaddleMIX/issues/1188",
    ),
    Report(Run("flux2", _NONE, "h100"), False, FLUX2),
    Report(
        Run("flux2", _MODEL, "a100-80gb"),
        True,
        "https://github.com/vllm-project/vllm-omni/pull/1629",
    ),
    Report(
        Run("qwen-image", _NONE, "a100-80gb", _size(2048, 2048)),
        True,
        f"{DIFFUSERS}/issues/12900",
    ),
    Report(Run("cogvideox-5b", _MODEL, "t4"), False, f"{COGVIDEO}/741"),
    Report(Run("cogvideox1.5-5b", _NONE, "a100-80gb"), False, f"{COGVIDEO}/545"),
    Report(
        Run("ltx2", _NONE, "rtx-4070-ti-super"),
        False,
        "https://github.com/mainza-ai/milimovideo/issues/6",
    ),
)


def _peak_rows() -> Iterator[str]:
    yield "| call | techniques | card | published | | allocated | modelled | reserved | deviation |"
    yield "|---|---|---|---:|---|---:|---:|---:|---:|"
    for peak in PEAKS:
        way = peak.run.way()
        ours = way.modelled_bytes if peak.counter == "allocated" else way.reserved_bytes
        shown = 0.45 * GIB if peak.counter in ("shown", "at least") else 0.0
        deviation = (ours + shown) / GIB / peak.published - 1
        figures = (way.peak_bytes, way.modelled_bytes, way.reserved_bytes)
        yield (
            f"| {peak.run.words} | [{peak.published:g}]({peak.source}) | {peak.counter} | "
            + " | ".join(f"{figure / GIB:.2f}" for figure in figures)
            + f" | {deviation:+.1%} |"
        )


def _report_rows() -> Iterator[str]:
    yield "| call | techniques | card | reported | needs | has | `fit` says |"
    yield "|---|---|---|---|---:|---:|---|"
    for report in REPORTS:
        way = report.run.way()
        device = SimulatedDevice(report.run.card, taken_bytes=MAX_CONTEXT_BYTES)
        memory_bytes = device.profile.memory_bytes
        says = Fit("", {}, "", memory_bytes, {}).fits(way)
        reported = "fits" if report.fits else "out of memory"
        where = "" if way.refusal is None else way.refusal.rpartition("fragments, ")[2]
        yield (
            f"| {report.run.words} | [{reported}]({report.source}) | "
            f"{way.needed_bytes / GIB:.2f} | {memory_bytes / GIB:.2f} | "
            f"{says}{', ' + where if where else ''} |"
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for row in itertools.chain(_peak_rows(), [""], _report_rows()):
        print(row, flush=True)
