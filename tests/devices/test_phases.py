"""Phases: which component of a pipeline is at work."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from fixtures.devices.phases import Phases, denoiser


class Vae(nn.Module):
    """Decodes through its parts, as diffusers' do: its own forward is never called."""

    def __init__(self) -> None:
        super().__init__()
        self.post_quant_conv = nn.Identity()
        self.decoder = nn.Identity()

    def decode(self, latents: torch.Tensor) -> torch.Tensor:
        decoded: torch.Tensor = self.decoder(self.post_quant_conv(latents))
        return decoded


class Pipeline:
    """Text encoder once, denoiser twice, VAE twice (slices)."""

    def __init__(self, denoiser: str = "unet") -> None:
        self.text_encoder = nn.Identity()
        self.denoiser = denoiser
        setattr(self, denoiser, nn.Identity())
        self.vae = Vae()

    def __call__(self) -> None:
        x = self.text_encoder(torch.ones(1))
        for _ in range(2):
            x = getattr(self, self.denoiser)(x)
        for _ in range(2):
            self.vae.decode(x)


class Proxy:
    """Delegates everything, and is no module."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def __call__(self, *args: Any) -> Any:
        return self.inner(*args)


def phases_of(pipeline: Any, calls: int = 1) -> list[str]:
    """The phases of so many calls."""
    seen: list[str] = []
    with Phases(pipeline, seen.append):
        for _ in range(calls):
            pipeline()
    return seen


def hook_count(pipeline: Any) -> int:
    """Forward pre-hooks left anywhere in the pipeline."""
    components = [part for part in vars(pipeline).values() if isinstance(part, nn.Module)]
    return sum(len(m._forward_pre_hooks) for part in components for m in part.modules())


EACH = ["text_encoder", "denoiser", "vae"]


@pytest.mark.parametrize("name", ["unet", "transformer"])
@pytest.mark.parametrize(
    "replaced",
    [
        lambda module: module,
        nn.Sequential,
        Proxy,
        lambda module: module.compile(backend="eager") or module,
    ],
    ids=["as it is", "in a wrapper", "behind a proxy", "compiled"],
)
def test_each_component_starts_once_in_every_call(name: str, replaced: Any) -> None:
    pipeline = Pipeline(name)
    module = replaced(getattr(pipeline, name))
    setattr(pipeline, name, module)
    pipeline()  # compiles, without hooks
    compiled = getattr(module, "_compiled_call_impl", None)
    assert phases_of(pipeline, calls=2) == EACH * 2
    assert phases_of(Proxy(pipeline)) == EACH
    assert hook_count(pipeline) == 0
    assert getattr(module, "_compiled_call_impl", None) is compiled


def test_what_takes_no_hooks_or_is_missing_counts_to_the_phase_before() -> None:
    pipeline = Pipeline()
    pipeline.unet = lambda x: x  # type: ignore[attr-defined]
    assert phases_of(pipeline) == ["text_encoder", "vae"]
    with Phases(SimpleNamespace(vae=None), print) as phases:
        assert phases.current is None


def test_a_pipeline_without_a_denoiser_is_refused() -> None:
    with pytest.raises(AttributeError, match="SimpleNamespace has no unet or transformer"):
        denoiser(SimpleNamespace(unet=None))


def test_a_call_that_fails_leaves_no_hook() -> None:
    def raising(component: str) -> None:
        if component == "denoiser":
            raise MemoryError(component)

    pipeline = Pipeline()
    with pytest.raises(MemoryError), Phases(pipeline, raising):
        pipeline()
    assert hook_count(pipeline) == 0
