"""CogVideoX's published figures with the VAE of the diffusers of their day.

`python -m tests.support.published.older FOLDER` prints them, some 3 minutes. FOLDER is of
`pip install --no-deps --target FOLDER diffusers==0.30.3` (or 0.30.2, which encodes a video in one
pass). Of it only the VAE's code is read; the rest is the diffusers that is installed.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from fixtures.workloads import cogvideox
from fixtures.workloads.random_weights import random_model
from tests.support.published import measuring, scripts, sources, verdicts
from tests.support.published.page import FIGURES, words
from tests.support.published.placing import Place
from tests.support.published.records import Call, Figure, Script

_FILE = "diffusers/models/autoencoders/autoencoder_kl_cogvideox.py"
_MODULE = "diffusers.models.autoencoders.autoencoder_kl_cogvideox_older"
_OF_THE_DAY = (sources.TORCHAO, sources.COGVIDEOX)


def older_vae(folder: Path) -> Any:
    """The class of CogVideoX's VAE in another diffusers, which has only this file loaded."""
    spec = importlib.util.spec_from_file_location(_MODULE, folder / _FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module
    spec.loader.exec_module(module)
    return module.AutoencoderKLCogVideoX


def _with(vae_class: Any, call: Call, card: str) -> Script:
    """The call with this VAE."""

    def script(device: torch.device) -> Callable[[], object]:
        workload = measuring.changed(call, measuring.device_of(card))
        pipeline = workload.load(torch.bfloat16)
        vae = random_model(
            lambda: vae_class.from_config(cogvideox.PUBLISHED["vae"]), torch.bfloat16
        )
        pipeline.vae = vae.requires_grad_(False)
        _place(call)(pipeline, device)
        return lambda: workload.draw(pipeline, steps=2)

    return script


def _place(call: Call) -> Place:
    """How its techniques place it."""
    if callable(call.how):
        return call.how

    def placed(pipeline: Any, device: torch.device) -> None:
        techniques = set(call.how) if isinstance(call.how, tuple) else set()
        if "vae_tiling" in techniques:
            pipeline.vae.enable_tiling()
        if "model_cpu_offload" in techniques:
            pipeline.enable_model_cpu_offload(device=device)
        elif "sequential_cpu_offload" in techniques:
            pipeline.enable_sequential_cpu_offload(device=device)
        else:
            pipeline.to(device)
        if "fused_qkv_projections" in techniques:
            pipeline.fuse_qkv_projections()

    return placed


def _runs(folder: Path) -> Iterator[Figure]:
    """The figures of CogVideoX, each with the older VAE."""
    vae_class = older_vae(folder)
    encode = scripts.cogvideox_encode
    if not hasattr(vae_class, "tiled_encode"):  # before 0.30.3
        trip = encode(vae_class=vae_class, decoded=True)
        first = Figure(sources.ENCODER, trip, "29.08", "a100-80gb", name="#9333, before")
        yield first
        yield replace(first, published="30.88", counter="reserved")
        return
    for figure in FIGURES:
        run = figure.run
        of_the_day = figure.source in _OF_THE_DAY and figure.counter in ("allocated", "shown")
        if of_the_day and isinstance(run, Call) and run.workload.startswith("cogvideox-"):
            yield replace(figure, run=_with(vae_class, run, figure.card), name=words(figure))
    for tiled, allocated, reserved in ((False, "12.45", "20.91"), (True, "3.59", "5.41")):
        trip = encode(tiled=tiled, vae_class=vae_class, decoded=True)
        name = f"#9333, after{', VAE tiling' if tiled else ''}"
        made = Figure(sources.ENCODER, trip, allocated, "a100-80gb", name=name)
        yield made
        yield replace(made, published=reserved, counter="reserved")


def print_older(folder: Path) -> None:
    """Print each figure."""
    print("| run | of | published | ours | deviation | |")
    print("|---|---|---:|---:|---:|---|")
    for figure in _runs(folder):
        ours = measuring.taken(figure).by_counter[figure.counter]
        deviation = f"{verdicts.deviation(figure, ours):+.1%}"
        hit = "hit" if verdicts.is_hit(figure, ours) else "miss"
        print(
            f"| {figure.name} | {figure.counter} | {figure.published} | "
            f"{ours / figure.unit:.3f} | {deviation} | {hit} |",
            flush=True,
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print_older(Path(sys.argv[1]))
