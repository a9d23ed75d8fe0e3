"""Peaks by the profiler: of code past the dispatcher, and of other code as the ledger has them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from fixtures.devices.cpu import CpuDevice
from fixtures.devices.ledger import StorageLedger
from fixtures.devices.needs import missing_cpp_compiler
from fixtures.devices.profiled_memory import ProfiledMemory
from fixtures.records.run import WHOLE
from tests.support.scenarios import find_scenario

KIB = 1024
SIDE = 128
SQUARE_BYTES = SIDE * SIDE * 4
WRAPPED_BYTES = 16
"""Numbers of Python that torch makes tensors of on the way: the ledger does not see them."""


def empty(size_bytes: int) -> torch.Tensor:
    """Made as the code that inductor writes makes its buffers."""
    made: torch.Tensor = torch._C._dynamo.guards._empty_strided_cpu(  # type: ignore[attr-defined]
        (size_bytes,), (1,), torch.uint8
    )
    return made


def test_buffers_past_the_dispatcher_count_beside_the_weights_and_by_component() -> None:
    weight = torch.zeros(KIB, dtype=torch.uint8)
    resident = [weight, weight.view(2, -1), weight]
    with StorageLedger(resident) as ledger, ProfiledMemory(resident) as memory:
        before = empty(8 * KIB)
        del before
        kept = empty(KIB)
        memory.enter_component("text_encoder")
        memory.enter_component("vae")
        large = empty(4 * KIB)
        del large
        memory.enter_component("denoiser")
        also = empty(KIB)
        memory.enter_component("vae")
    assert memory.component_peak_bytes == {
        WHOLE: 9 * KIB,
        "text_encoder": 2 * KIB,
        "vae": 6 * KIB,
        "denoiser": 3 * KIB,
    }
    assert ledger.component_peak_bytes[WHOLE] == KIB
    assert kept.nbytes == also.nbytes == KIB


def test_a_weight_that_the_call_replaces_is_no_longer_alive() -> None:
    model = torch.nn.Linear(SIDE, SIDE, bias=False)
    with ProfiledMemory(model.parameters()) as memory:
        model.weight.data = model.weight.data.bfloat16()
        model.weight.data = model.weight.data.float()
    assert memory.component_peak_bytes == {WHOLE: 3 * SQUARE_BYTES // 2}


def test_the_end_of_what_an_earlier_profiler_saw_begin_is_not_of_this_call() -> None:
    with ProfiledMemory():
        kept = [empty(4 * KIB)]
    with ProfiledMemory() as memory:
        kept.clear()
        made = empty(KIB)
    assert memory.component_peak_bytes == {WHOLE: made.nbytes}


def test_scratch_of_a_kernel_does_not_count() -> None:
    image, weight = torch.zeros(1, 8, 32, 32), torch.zeros(8, 8, 3, 3)
    with ProfiledMemory() as memory, torch.no_grad():
        torch.ops.aten._slow_conv2d_forward(image, weight, [3, 3], None, [1, 1], [1, 1])
    assert memory.component_peak_bytes[WHOLE] == image.nbytes


def test_what_an_operation_of_operations_keeps_between_them_counts() -> None:
    squares = [torch.zeros(SIDE, SIDE) for _ in range(3)]
    with StorageLedger() as ledger, ProfiledMemory() as memory:
        torch.linalg.multi_dot(squares)
    assert memory.component_peak_bytes == ledger.component_peak_bytes == {WHOLE: 2 * SQUARE_BYTES}


# Compiled by inductor


def fused(x: torch.Tensor) -> torch.Tensor:
    return (x @ x + 1).relu() * 2


def with_a_larger_buffer(x: torch.Tensor) -> torch.Tensor:
    wide = x @ torch.cat([x, x, x], 1)
    return (wide[:, :SIDE] + 1).relu() * 2


def in_two_graphs(x: torch.Tensor) -> torch.Tensor:
    shifted = x @ x + 1
    torch._dynamo.graph_break()
    return shifted.relu() * 2


@pytest.mark.long
@pytest.mark.skipif(missing_cpp_compiler() is not None, reason="needs a C++ compiler")
@pytest.mark.parametrize(
    ("work", "more_buffers"), [(fused, 0), (with_a_larger_buffer, 5), (in_two_graphs, 1)]
)
def test_each_buffer_of_compiled_code_counts(
    work: Callable[[torch.Tensor], torch.Tensor], more_buffers: int
) -> None:
    """Its peak is one buffer, which the kernel writes over: what is fused keeps no other."""
    x, kept = torch.zeros(SIDE, SIDE), list[torch.Tensor]()
    compiled = torch.compile(work)

    def peak_bytes(*, keep: bool = False) -> int:
        with ProfiledMemory([x]) as memory, torch.no_grad():
            for _ in range(3):
                result = compiled(x)
                if keep:
                    kept.append(result)
                del result
        return memory.component_peak_bytes[WHOLE]

    try:
        peak_bytes()
        assert peak_bytes() == (2 + more_buffers) * SQUARE_BYTES
        assert peak_bytes(keep=True) == (2 + more_buffers + 2) * SQUARE_BYTES
    finally:
        torch.compiler.reset()


# The state of the profiler


def test_after_an_error_nothing_is_measured_and_nothing_profiles() -> None:
    memory = ProfiledMemory()
    with pytest.raises(RuntimeError, match="size"), memory:
        torch.zeros(2) + torch.zeros(3)
    assert memory.component_peak_bytes == {}
    assert not torch._C._autograd._profiler_enabled()
    assert not torch.autograd.profiler._is_profiler_enabled


def test_where_another_profiler_is_at_work_it_stays_the_only_one() -> None:
    with ProfiledMemory() as outer:
        with pytest.raises(RuntimeError, match="another profiler"), ProfiledMemory():
            pytest.fail("two profilers at once")
        made = empty(KIB)
    assert outer.component_peak_bytes == {WHOLE: made.nbytes}
    with ProfiledMemory([torch.zeros(KIB)]) as memory, torch.profiler.profile():
        empty(KIB)
    assert memory.component_peak_bytes == {}


# Beside the ledger


def test_the_device_measures_compiled_code_by_components_like_any_other() -> None:
    """But for tensors that are older than the call: the scheduler's, of a thousand numbers."""
    device, scenario = CpuDevice(), find_scenario("storybook", "fp32")
    with scenario.running(device) as pipeline:
        peaks = []
        for compiled in (False, True):
            with device.observe(pipeline, compiled=compiled) as trace:
                scenario.workload.draw(pipeline, steps=2)
            peaks.append(trace.component_peak_bytes)
    ledger, profiler = peaks
    assert list(ledger) == list(profiler) == [WHOLE, "text_encoder", "denoiser", "vae"]
    for component, peak in ledger.items():
        assert 0 <= peak - profiler[component] <= 4000 + 16 + WRAPPED_BYTES
