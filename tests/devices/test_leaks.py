"""What a call leaves alive is a leak and is named; the size of an allocator's blocks is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from fixtures.devices.cuda import CudaDevice
from fixtures.devices.leaks import ALLOWED_BYTES, LeakCheck
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.records.units import MIB
from tests.devices.fake_cuda import FakeCuda, Tensor
from tests.support.running import run_suite

CPU = torch.device("cpu")
EMPTY: Any = SimpleNamespace()


class Books:
    """What live tensors requested, as the test says."""

    def __init__(self) -> None:
        self.requested = 100 * MIB

    def __call__(self) -> int:
        return self.requested


@pytest.fixture
def books() -> Books:
    return Books()


@pytest.mark.parametrize(
    ("left_bytes", "is_leak"), [(-MIB, False), (ALLOWED_BYTES, False), (ALLOWED_BYTES + 1, True)]
)
def test_a_leak_is_more_than_a_schedule(books: Books, left_bytes: int, is_leak: bool) -> None:
    check = LeakCheck(CPU, books)
    books.requested += left_bytes
    assert (check.sentence() is not None) is is_leak


def test_a_leak_is_named_by_what_is_new(books: Books) -> None:
    old = [torch.zeros((7, 11), dtype=torch.float64)]
    check = LeakCheck(CPU, books)
    new = [torch.zeros((7, 11), dtype=torch.float64) for _ in range(3)]
    books.requested += 2 * MIB
    assert check.sentence() == "a call left 2.00 MiB allocated; still alive: 3 x float64 (7, 11)"
    assert len(old + new) == 4


def test_a_tensor_that_tracing_left_is_passed_over(books: Books) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import (
        DimDynamic,
        ShapeEnv,
        StatelessSymbolicContext,
    )

    mode = FakeTensorMode(shape_env=ShapeEnv())
    dynamic: Any = StatelessSymbolicContext([DimDynamic.DYNAMIC] * 2)
    symbolic = mode.from_tensor(torch.zeros(5, 7), symbolic_context=dynamic)
    assert not isinstance(symbolic.shape[0], int)
    check = LeakCheck(CPU, books)
    books.requested += 2 * MIB
    assert "allocated" in str(check.sentence())


# On the simulated device

SHAPE = (64, 256)
LEFT = "a call left 0.06 MiB allocated; still alive: 1 x float32 (64, 256)"


def simulated(call: Callable[[Any], object]) -> str | None:
    """What the device reports of the second of two calls."""
    device = SimulatedDevice()
    with device.entered():
        pipeline = SimpleNamespace(unet=torch.nn.Identity())
        call(pipeline)
        with device.observe(pipeline) as trace:
            call(pipeline)
        del pipeline
    return trace.leak


def drawn() -> torch.Tensor:
    return torch.zeros(SHAPE, device="cuda")


def test_a_list_that_keeps_every_image_is_a_leak() -> None:
    kept: list[torch.Tensor] = []
    assert simulated(lambda pipeline: kept.append(drawn())) == LEFT
    kept.clear()


def test_an_attribute_of_the_pipeline_that_is_replaced_is_not_a_leak() -> None:
    assert simulated(lambda pipeline: setattr(pipeline, "last", drawn())) is None


def test_a_buffer_that_grows_is_a_leak() -> None:
    def grow(pipeline: Any) -> None:
        seen = getattr(pipeline.unet, "seen", None)
        image = drawn() if seen is None else torch.cat([seen, drawn()])
        pipeline.unet.register_buffer("seen", image)

    assert simulated(grow) == LEFT.replace("(64, 256)", "(128, 256)")


def test_a_reference_cycle_is_a_leak() -> None:
    def close(pipeline: Any) -> None:
        cycle: list[Any] = [drawn()]
        cycle.append(cycle)

    assert simulated(close) == (
        "a call left 0.06 MiB in reference cycles, among them: 1 x float32 (64, 256)"
    )


def test_weights_that_return_to_larger_blocks_are_not_a_leak() -> None:
    """A model that is cast to fp32 and back may lie in blocks that are larger than its weights."""
    device = SimulatedDevice()
    with device.entered():
        assert device._simulation is not None
        allocator = device._simulation.memory.allocator
        model = torch.nn.ModuleList(
            torch.nn.Linear(1024, rows, bias=False) for rows in (2000, 900)
        ).to(device.torch_device, torch.float16)
        before = allocator.allocated_bytes
        with device.observe(SimpleNamespace(unet=model)) as trace:
            model.to(torch.float32)
            model.to(torch.float16)
        assert allocator.allocated_bytes > before + ALLOWED_BYTES
        assert trace.leak is None


# On CUDA


def observed(call: Callable[[FakeCuda], object]) -> str | None:
    """What the device says of a call's leak."""
    cuda = FakeCuda()
    cuda.allocate(10 * MIB)
    with CudaDevice(cuda=cuda).observe(EMPTY) as trace:
        call(cuda)
    return trace.leak


def test_on_cuda_what_is_kept_is_a_leak_and_what_is_released_is_not() -> None:
    kept: list[Tensor] = []
    assert observed(lambda cuda: cuda.tensor(MIB)) is None
    assert observed(lambda cuda: kept.append(cuda.tensor(MIB))) == (
        "a call left 1.00 MiB allocated; still alive: no tensor"
    )


def test_on_cuda_a_larger_block_is_not_a_leak() -> None:
    def to_another_block(cuda: FakeCuda) -> None:
        cuda.free(3 * MIB)
        cuda.allocate(3 * MIB, block=4 * MIB)

    assert observed(to_another_block) is None


def test_on_cuda_a_reference_cycle_is_a_leak() -> None:
    def close(cuda: FakeCuda) -> None:
        one = cuda.tensor(MIB)
        one.other = one

    assert observed(close) == "a call left 1.00 MiB in reference cycles, among them: no tensor"


def test_on_cuda_blocks_are_counted_where_the_allocator_reports_no_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FakeCuda, "memory_stats", lambda cuda, index: {})
    kept: list[Tensor] = []
    assert observed(lambda cuda: cuda.tensor(MIB)) is None
    assert "left 1.00 MiB" in str(observed(lambda cuda: kept.append(cuda.tensor(MIB))))


def test_a_leak_fails_the_test_of_faults(tmp_path: Path) -> None:
    result = run_suite(
        *("-p", "tests.support.fake_bench", "--perf-device", "simulated"),
        *("--perf-workload", "storybook"),
        *("-k", "test_faults and bf16", f"--perf-baselines={tmp_path}"),
        FAKE_LEAK="storybook-bf16",
    )
    assert result.returncode == pytest.ExitCode.TESTS_FAILED
    assert "storybook-bf16: a call left 2.00 MiB allocated" in result.stdout
