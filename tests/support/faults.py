"""Faults to inject into a real run: `pytest perf_tests -p tests.faults`.

Each breaks one technique in one way; `tests/test_faults.py` says which tests must turn red.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from fixtures import worker
from fixtures.devices import Device
from fixtures.scenarios import Scenario
from fixtures.techniques.registry import CATALOGUE, Application, CalledWithin
from fixtures.workloads import Workload

SLOW_DOWN = float(os.environ.get("PERF_FAULT_SLOW_DOWN", "0.30"))


def _plain(workload: Workload, device: Device) -> Iterator[Any]:
    """The technique silently does nothing."""
    yield workload.load(device.base_dtype).to(device.torch_device)


def _altered(change: Callable[[Any], Any]) -> Callable[[Application], Application]:
    """The technique as it is, with its pipeline changed."""

    def alter(apply: Application) -> Application:
        def altered(workload: Workload, device: Device) -> Iterator[Any]:
            for pipeline in apply(workload, device):
                yield change(pipeline) or pipeline

        return altered

    return alter


class _Slower(CalledWithin):
    """Burns `SLOW_DOWN` more CPU time after each call; no tensor is touched."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        start_s = time.thread_time()
        result = super().__call__(*args, **kwargs)
        until_s = time.thread_time() + SLOW_DOWN * (time.thread_time() - start_s)
        while time.thread_time() < until_s:
            pass
        return result


def _slow_down(pipeline: Any) -> Any:
    from contextlib import nullcontext

    return _Slower(pipeline, nullcontext)


def _leave_an_upcast(pipeline: Any) -> None:
    """Cast the time embedding to fp32 and back: the picture and the peak stay as they are."""
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
    """Take each scheduler step on another noise schedule: the same work, another picture."""
    pipeline.scheduler.alphas_cumprod = pipeline.scheduler.alphas_cumprod**0.5


def _run_out_of_memory(pipeline: Any) -> Any:
    def call(*_: Any, **__: Any) -> Any:
        raise MemoryError("DefaultCPUAllocator: can't allocate memory: 1099511627776 bytes")

    return _Replaced(pipeline, call)


def _raise(pipeline: Any) -> Any:
    def call(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("injected")

    return _Replaced(pipeline, call)


class _Replaced(CalledWithin):
    """A pipeline with another call."""

    def __init__(self, pipeline: Any, call: Callable[..., Any]) -> None:
        from contextlib import nullcontext

        super().__init__(pipeline, nullcontext)
        self._call = call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)


def _draw_nan(pipeline: Any) -> None:
    pipeline.vae.decoder.conv_out.bias.fill_(float("nan"))


FAULTS: dict[str, Callable[[Application], Application]] = {
    "channels_last": _altered(_slow_down),
    "bf16": _altered(_leave_an_upcast),
    "attention_slicing": lambda apply: _plain,
    "vae_tiling": lambda apply: _plain,
    "vae_slicing": _altered(_copy_and_read_back),
    "sdpa": _altered(_step_wrongly),
    "traced_unet": _altered(_run_out_of_memory),
    "autocast": _altered(_raise),
    "layerwise_casting": _altered(_draw_nan),
}


def inject() -> None:
    """Put the faults in."""
    for name, fault in FAULTS.items():
        technique = CATALOGUE[name]
        CATALOGUE.techniques[name] = replace(technique, apply=fault(technique.apply))


def faulty(scenario: Scenario) -> Scenario:
    """The scenario with its fault, in a process that knows of none yet."""
    inject()
    return replace(scenario, technique=CATALOGUE[scenario.technique.id])


def pytest_configure(config: pytest.Config) -> None:
    """Put the faults into this process, and into those that take further looks."""
    # Not at the top: pytest rewrites the plugin's assertions, and that must come first.
    from fixtures import plugin

    inject()
    plugin.look_in_fresh_process = partial(worker.look_in_fresh_process, change=faulty)
