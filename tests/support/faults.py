"""Faults to inject into a real run: `pytest perf_tests -p tests.support.faults`.

Each breaks one technique in one way; with PERF_FAULT_OF_ALL=NAME one of `FAULTS_OF_ALL` breaks
every technique instead, as a release would. `tests/suite/test_faults.py` says which tests fail.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import numpy as np
import pytest

from fixtures.catalogue.techniques.registry import CATALOGUE, Wrapped
from fixtures.catalogue.techniques.technique import Application
from fixtures.catalogue.workloads import Workload
from fixtures.devices import Device
from fixtures.worker.client import Worker
from tests.support.patched_python import command

SLOW_DOWN = float(os.environ.get("PERF_FAULT_SLOW_DOWN", "0.30"))
Fault = Callable[[Application], Application]


def _not_applied(apply: Application) -> Application:
    """The technique silently does nothing."""

    def plain(workload: Workload, device: Device) -> Iterator[Any]:
        yield workload.load(device.base_dtype).to(device.torch_device)

    return plain


def _altered(alter: Callable[[Any], Any]) -> Fault:
    """The technique as it is, with its pipeline altered in place, or replaced."""

    def fault(apply: Application) -> Application:
        def altered(workload: Workload, device: Device, **settings: Any) -> Iterator[Any]:
            for pipeline in apply(workload, device, **settings):
                yield alter(pipeline) or pipeline

        return altered

    return fault


def _called_within(context: Callable[[], contextlib.AbstractContextManager[Any]]) -> Fault:
    """The technique as it is, with each call inside a context."""
    return _altered(lambda pipeline: Wrapped(pipeline, context))


@contextlib.contextmanager
def _slower() -> Iterator[None]:
    """Burn `SLOW_DOWN` more CPU time after the call; no tensor is touched."""
    start_s = time.thread_time()
    yield
    until_s = time.thread_time() + SLOW_DOWN * (time.thread_time() - start_s)
    while time.thread_time() < until_s:
        pass


def _out_of_memory() -> NoReturn:
    raise MemoryError("DefaultCPUAllocator: can't allocate memory: 1099511627776 bytes")


def _poisoning() -> NoReturn:
    """Raise with settings left as they should not be for whoever comes next."""
    import torch

    torch.autocast("cpu", torch.bfloat16).__enter__()
    torch.set_default_device("meta")
    raise ZeroDivisionError("injected")


def _leave_an_upcast(pipeline: Any) -> None:
    """Cast the time embedding to fp32 and back: the image and the peak stay as they are."""
    pipeline.unet.time_embedding.register_forward_hook(
        lambda module, inputs, output: output.float().to(output.dtype)
    )


def _copy_and_read_back(pipeline: Any) -> None:
    """Copy the latents once more, and wait for one of their values."""

    def before(module: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        latents = inputs[0].clone()
        latents.flatten()[0].item()
        return (latents, *inputs[1:])

    pipeline.vae.decoder.register_forward_pre_hook(before)


def _step_wrongly(pipeline: Any) -> None:
    """Take each scheduler step on another noise schedule: the same work, another image."""
    pipeline.scheduler.alphas_cumprod = pipeline.scheduler.alphas_cumprod**0.5


def _draw_nan(pipeline: Any) -> None:
    pipeline.vae.decoder.conv_out.bias.fill_(float("nan"))


class _PaintedRed(Wrapped):
    """Draws what is light in red: the same outlines, so a high SSIM, and the same operations."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        drawn = super().__call__(*args, **kwargs)
        light = drawn.images.min(axis=-1, keepdims=True) > 0.65
        red = np.array([1.0, 0.25, 0.2], drawn.images.dtype)
        drawn.images = np.where(light, drawn.images * red, drawn.images)
        return drawn


FAULTS: dict[str, Fault] = {
    "channels_last": _called_within(_slower),
    "bf16": _altered(_leave_an_upcast),
    "attention_slicing": _not_applied,
    "vae_tiling": _not_applied,
    "vae_slicing": _altered(_copy_and_read_back),
    "sdpa": _altered(_step_wrongly),
    "traced_unet": _called_within(_out_of_memory),
    "autocast": _called_within(_poisoning),
    "layerwise_casting": _altered(_draw_nan),
    "first_block_cache": _altered(_PaintedRed),
}


def _slow_unet(pipeline: Any) -> None:
    """Burn `SLOW_DOWN` more CPU time in each call of the UNet."""
    starts_s: list[float] = []

    def after(module: Any, inputs: Any, output: Any) -> None:
        elapsed_s = time.thread_time() - starts_s.pop()
        until_s = time.thread_time() + SLOW_DOWN * elapsed_s
        while time.thread_time() < until_s:
            pass

    pipeline.unet.register_forward_pre_hook(lambda *_: starts_s.append(time.thread_time()))
    pipeline.unet.register_forward_hook(after)


def _scale_latents(pipeline: Any) -> None:
    factor = pipeline.vae.config.scaling_factor
    pipeline.vae.register_to_config(scaling_factor=factor * 1.01)


def _before_forward(module: Any, do: Callable[[], object]) -> None:
    """Call the function before the module's `forward`, without a hook: torch would call more."""
    forward = module.forward

    def longer(*args: Any, **kwargs: Any) -> Any:
        do()
        return forward(*args, **kwargs)

    module.forward = longer


def _check_a_version(pipeline: Any) -> None:
    import torch
    from packaging import version

    _before_forward(pipeline.unet, lambda: version.parse(torch.__version__) >= version.parse("2.1"))


def _walk_modules(pipeline: Any) -> None:
    unet = pipeline.unet
    _before_forward(unet, lambda: list(unet.named_modules()))


def _empty_the_cache(pipeline: Any) -> None:
    import torch

    for module in pipeline.unet.modules():
        _before_forward(module, lambda: torch.cuda.empty_cache())


FAULTS_OF_ALL: dict[str, Fault] = {
    "slow UNet": _altered(_slow_unet),
    "scaled latents": _altered(_scale_latents),
    "other schedule": _altered(_step_wrongly),
    "version check": _altered(_check_a_version),
    "walk over modules": _altered(_walk_modules),
    "emptied cache": _altered(_empty_the_cache),
}


def _chosen() -> dict[str, Fault]:
    """The fault of each technique that is to be broken."""
    name = os.environ.get("PERF_FAULT_OF_ALL")
    if name is None:
        return FAULTS
    return dict.fromkeys(CATALOGUE.techniques, FAULTS_OF_ALL[name])


def inject() -> None:
    """Put the faults into the catalogue of this process."""
    for name, fault in _chosen().items():
        technique = CATALOGUE[name]
        CATALOGUE.techniques[name] = replace(technique, apply=fault(technique.apply))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Put the faults into this process, and into the worker that takes samples."""
    inject()
    # By name: pytest rewrites the plugin's assertions, and that must come before its import.
    worker = partial(Worker, command=command("faults"))
    pytest.MonkeyPatch().setattr("fixtures.suite.session.Worker", worker)
