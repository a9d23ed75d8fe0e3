"""What a call leaves alive is a leak and is named; the size of an allocator's blocks is not."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from fixtures.devices.cpu import CpuDevice
from fixtures.devices.cuda import CudaDevice
from fixtures.devices.leaks import ALLOWED_BYTES, LeakCheck, collector_off
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.records.record import LEAK
from fixtures.records.units import MIB
from tests.devices.fake_cuda import FakeCuda, Tensor
from tests.support.scenarios import find_scenario

CPU = torch.device("cpu")
EMPTY: Any = SimpleNamespace()


def check(left_bytes: int) -> LeakCheck:
    """A check that finds so many bytes more at its end."""
    requested = chain([100 * MIB], repeat(100 * MIB + left_bytes))
    return LeakCheck(CPU, lambda: next(requested))


@pytest.mark.parametrize(
    ("left_bytes", "is_leak"), [(-MIB, False), (ALLOWED_BYTES, False), (ALLOWED_BYTES + 1, True)]
)
def test_a_leak_is_more_than_a_schedule_and_is_named_by_what_is_new(
    left_bytes: int, is_leak: bool
) -> None:
    before = [torch.zeros((7, 11), dtype=torch.float64)]
    leak_check = check(left_bytes)
    new = [torch.zeros((7, 11), dtype=torch.float64) for _ in range(3)]
    sentence = leak_check.sentence()
    assert (sentence is not None) is is_leak
    assert sentence is None or sentence.endswith("; still alive: 3 x float64 (7, 11)")
    assert len(before + new) == 4


def test_a_tensor_that_tracing_left_is_passed_over() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

    mode = FakeTensorMode(shape_env=ShapeEnv())
    dynamic: Any = StatelessSymbolicContext([DimDynamic.DYNAMIC] * 2)
    symbolic = mode.from_tensor(torch.zeros(5, 7), symbolic_context=dynamic)
    assert not isinstance(symbolic.shape[0], int)
    assert "2.00 MiB allocated" in str(check(2 * MIB).sentence())


def test_the_collector_is_off_inside_and_as_before_after_that_or_after_an_error() -> None:
    assert gc.isenabled()
    with collector_off():
        with collector_off():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(KeyError, match="False"), collector_off():
        raise KeyError(gc.isenabled())
    assert gc.isenabled()


# On the simulated device

SHAPE = (64, 256)
LEFT = "a call left 0.06 MiB allocated; still alive: 1 x float32 (64, 256)"


def simulated(call: Callable[[Any], object]) -> str | None:
    """What the device reports of the second of two calls."""
    device, pipeline = SimulatedDevice(), SimpleNamespace(unet=torch.nn.Identity())
    with device.entered():
        call(pipeline)
        with device.observe(pipeline) as trace:
            call(pipeline)
        vars(pipeline).clear()
    return trace.faults.get(LEAK)


def drawn() -> torch.Tensor:
    return torch.zeros(SHAPE, device="cuda")


def test_what_each_call_keeps_is_a_leak_and_what_it_replaces_is_none() -> None:
    kept: list[torch.Tensor] = []

    def close(pipeline: Any) -> None:
        cycle: list[Any] = [drawn()]
        cycle.append(cycle)

    assert simulated(lambda pipeline: setattr(pipeline, "last", drawn())) is None
    assert simulated(lambda pipeline: kept.append(drawn())) == LEFT
    assert simulated(close) == (
        "a call left 0.06 MiB in reference cycles, among them: 1 x float32 (64, 256)"
    )


# On the CPU

STORYBOOK = find_scenario("storybook", "fp32")


def test_on_the_cpu_what_a_part_of_the_pipeline_keeps_is_a_leak_and_its_image_is_none() -> None:
    device, kept = CpuDevice(), list[Any]()
    with STORYBOOK.running(device) as pipeline:

        def left(keep: Callable[[Any, Any], object], *, compiled: bool = False) -> str | None:
            handle = pipeline.vae.decoder.register_forward_hook(
                lambda module, inputs, output: keep(inputs[0], output) and None
            )
            with device.observe(pipeline, compiled=compiled) as trace:
                image = STORYBOOK.workload.draw(pipeline, steps=1)
                image = image.copy()
            handle.remove()
            return trace.faults.get(LEAK)

        def replace(latents: torch.Tensor, image: torch.Tensor) -> None:
            kept[:] = [image]

        def close(latents: torch.Tensor, image: torch.Tensor) -> None:
            cycle: list[Any] = [image]
            cycle.append(cycle)

        def alive(size: str, what: str) -> str:
            return f"a call left {size} allocated; still alive: {what}"

        latents, image = "1 x float32 (1, 4, 16, 16)", "1 x float32 (1, 3, 128, 128)"
        left(replace)
        assert left(replace) is None
        for compiled in (False, True):
            of = partial(left, compiled=compiled)
            assert of(lambda latents, image: kept.append(latents)) == alive("4,096 bytes", latents)
            assert of(lambda latents, image: kept.append(image)) == alive("0.19 MiB", image)
            assert of(close) == f"a call left 0.19 MiB in reference cycles, among them: {image}"


# On CUDA


def observed(call: Callable[[FakeCuda], object]) -> str | None:
    """What the device says of a call's leak."""
    cuda = FakeCuda()
    cuda.allocate(10 * MIB)
    with CudaDevice(cuda=cuda).observe(EMPTY) as trace:
        call(cuda)
    return trace.faults.get(LEAK)


@pytest.mark.parametrize("reports_requests", [True, False])
def test_on_cuda_what_is_kept_is_a_leak_and_what_is_released_is_not(
    reports_requests: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not reports_requests:
        monkeypatch.setattr(FakeCuda, "memory_stats", lambda cuda, index: {})
    kept: list[Tensor] = []

    def to_another_block(cuda: FakeCuda) -> None:
        cuda.free(3 * MIB)
        cuda.allocate(3 * MIB, block=4 * MIB)

    assert observed(lambda cuda: cuda.tensor(MIB)) is None
    assert observed(lambda cuda: kept.append(cuda.tensor(MIB))) == (
        "a call left 1.00 MiB allocated; still alive: no tensor"
    )
    assert (observed(to_another_block) is None) == reports_requests
