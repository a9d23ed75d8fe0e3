"""CogVideoX's published figures with the VAE of the diffusers of their day.

`python -m tests.support.published.older FOLDER` prints them, some 3 minutes. FOLDER is of
`pip install --no-deps --target FOLDER diffusers==0.30.3` (or 0.30.2, which encodes a video in one
pass). Of it only the VAE's code is read; the rest is the diffusers that is installed.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

from fixtures.workloads import cogvideox
from fixtures.workloads.random_weights import random_model
from tests.support.published import videos
from tests.support.published.figures import Counter, Run, fresh_peaks_of
from tests.support.published.placing import Place, fused, on_device

_FILE = "diffusers/models/autoencoders/autoencoder_kl_cogvideox.py"
_MODULE = "diffusers.models.autoencoders.autoencoder_kl_cogvideox_older"
_PROFILE = "a100-80gb"
_VIDEO = (1, 3, 49, 480, 720)

Row = tuple[str, Run, dict[Counter, float]]


def older_vae(folder: Path) -> Any:
    """The class of CogVideoX's VAE in another diffusers, which has only this file loaded."""
    spec = importlib.util.spec_from_file_location(_MODULE, folder / _FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module
    spec.loader.exec_module(module)
    return module.AutoencoderKLCogVideoX


def _made(vae_class: Any, dtype: torch.dtype) -> Any:
    return random_model(
        lambda: vae_class.from_config(cogvideox.PUBLISHED["vae"]), dtype
    ).requires_grad_(False)


def _placed(vae_class: Any, place: Place) -> Place:
    def placed(pipeline: Any, device: torch.device) -> None:
        pipeline.vae = _made(vae_class, pipeline.vae.dtype)
        place(pipeline, device)

    return placed


def _encoded_and_decoded(vae_class: Any, *, tiled: bool = False) -> Run:
    """A video there and back; that #9333 decoded as well is inferred from its figures."""

    def run(device: torch.device) -> None:
        vae = _made(vae_class, torch.bfloat16).to(device)
        if tiled:
            vae.enable_tiling()
        # Alive until the end, as in a script.
        video = torch.randn(_VIDEO, dtype=torch.bfloat16, device=device)
        vae.decode(vae.encode(video).latent_dist.sample())

    return run


def _rows(folder: Path) -> list[Row]:
    vae_class = older_vae(folder)
    trip = _encoded_and_decoded(vae_class)
    if not hasattr(vae_class, "tiled_encode"):  # before 0.30.3
        return [("#9333, before", trip, {"allocated": 29.08, "reserved": 30.88})]
    tiled = _encoded_and_decoded(vae_class, tiled=True)
    on, together = _placed(vae_class, on_device), _placed(vae_class, fused)
    return [
        ("5b bf16", videos.cogvideox_5b(on), {"allocated": 31.746}),
        ("5b bf16, fused projections", videos.cogvideox_5b(together), {"allocated": 33.96}),
        ("2b fp16", videos.cogvideox_2b(on), {"allocated": 24.511}),
        ("2b fp16, fused projections", videos.cogvideox_2b(together), {"allocated": 25.142}),
        ("#9333, after", trip, {"allocated": 12.45, "reserved": 20.91}),
        ("#9333, after, VAE tiling", tiled, {"allocated": 3.59, "reserved": 5.41}),
    ]


def print_older(folder: Path) -> None:
    """Print each figure."""
    print("| run | published | modelled | deviation |")
    print("|---|---:|---:|---:|")
    for name, run, published in _rows(folder):
        ours = fresh_peaks_of(_PROFILE, run).modelled
        for counter, gib in published.items():
            deviation = f"{ours[counter] / gib - 1:+.1%}"
            print(
                f"| {name}, {counter} | {gib:g} | {ours[counter]:.3f} | {deviation} |", flush=True
            )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print_older(Path(sys.argv[1]))
