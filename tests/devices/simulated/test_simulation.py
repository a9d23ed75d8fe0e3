"""The simulated device repeats to the byte, agrees with what is known, and refuses to guess."""

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from fixtures.catalogue.techniques import CATALOGUE
from fixtures.devices import Trace
from fixtures.devices.cpu import CpuDevice
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.devices.simulated.simulation import DEVICE, Simulation, UnknownValueError
from fixtures.records.counts import (
    BYTES_TO_DEVICE,
    COPIES_TO_HOST,
    FLOPS,
    OF_DEVICE,
    OPERATIONS,
    SYNCS,
    Counts,
    Row,
)
from fixtures.records.run import RESERVED, WHOLE
from tests.support.simulated_runs import shared_device, shared_workload, simulate, simulated, small

COMPONENTS = {WHOLE, RESERVED, "text_encoder", "denoiser", "vae"}


@pytest.fixture
def plain() -> Trace:
    return simulated()


def test_a_trace_has_every_figure(plain: Trace) -> None:
    peaks, counts = plain.component_peak_bytes, plain.counts
    assert set(peaks) == COMPONENTS
    assert peaks[WHOLE] == max(peaks[name] for name in ("text_encoder", "denoiser", "vae"))
    assert peaks[RESERVED] > peaks[WHOLE]
    assert plain.calls == {"text_encoder": 2, "denoiser": 3, "vae": 1}
    assert plain.bound_ms is not None
    assert plain.bound_ms > 0
    assert not plain.faults
    assert Row(OPERATIONS, "aten::convolution", "ResnetBlock2D") in counts.rows


def test_the_same_run_gives_the_same_figures_after_anything_else(plain: Trace) -> None:
    device, workload = SimulatedDevice(), small()
    simulate("group_offload_leaf", workload=workload, device=device)
    assert simulate(workload=workload, device=device) == plain


def test_inference_mode_is_counted_as_no_grad_is() -> None:
    """Only in inference mode do composite operations, such as `linear`, arrive whole."""
    device, figures = SimulatedDevice(), []
    for mode in (torch.no_grad, torch.inference_mode):
        with device.entered(), mode():
            layer = torch.nn.Linear(64, 32).to(device.torch_device)
            with device.observe(SimpleNamespace(unet=layer)) as trace:
                layer(torch.ones(4, 64).to(device.torch_device)).softmax(dim=-1).cpu()
        figures.append((trace.counts, trace.component_peak_bytes))
    assert figures[0][0].by_name(OPERATIONS)["aten::addmm"] == 1
    assert figures[0] == figures[1]


@pytest.mark.parametrize("technique", ["fp32", "attention_slicing"])
def test_flops_are_those_of_torchs_own_counter_on_a_real_run(technique: str) -> None:
    size: dict[str, Any] = {"width": 64, "height": 64, "steps": 2}
    trace = simulate(technique, workload=small(**size), device=shared_device())
    device, workload = CpuDevice(), small(**size)
    # The CPU's fused attention is not in torch's table of FLOPs; its plain form is.
    with (
        CATALOGUE[technique].applied(workload, device) as pipeline,
        sdpa_kernel(SDPBackend.MATH),
        FlopCounterMode(display=False) as counter,
    ):
        workload.draw(pipeline)
    assert trace.counts.total(FLOPS) == counter.get_total_flops()


def test_peaks_agree_with_the_ledger_of_a_real_run() -> None:
    """Within rounding to 512 bytes: both see the same tensors come and go."""
    trace = simulate("fp32", workload=small(steps=2), device=shared_device())
    device, workload = CpuDevice(), small(steps=2)
    with CATALOGUE["fp32"].applied(workload, device) as pipeline:
        workload.draw(pipeline, steps=1)
        with device.observe(pipeline) as real:
            workload.draw(pipeline)
    workspace = SimulatedDevice().profile.cublas_workspace_bytes
    for component in ("denoiser", "vae", WHOLE):
        simulated_bytes = trace.component_peak_bytes[component] - workspace
        assert simulated_bytes == pytest.approx(real.component_peak_bytes[component], rel=0.02)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize(
    ("scheduler", "telling"), [("DDIMScheduler", 3), ("UniPCMultistepScheduler", 4)]
)
def test_every_further_step_adds_the_same_figures(scheduler: str, telling: int) -> None:
    device = shared_device()
    workload = small(scheduler, width=64, height=64)
    few, one_more, many = (
        simulate(workload=workload, device=device, steps=telling + more) for more in (0, 1, 6)
    )
    after_one_more, after_six_more = one_more.counts.tally, many.counts.tally
    per_step = few.per_call.tally
    for row, count in few.counts.only(OF_DEVICE).tally.items():
        further = after_one_more[row] - count
        assert after_six_more[row] == count + 6 * further, row
        # What a step does, told from one run; the schedule itself grows by two numbers a step.
        assert abs(further - per_step.get(row, 0)) <= (16 if "bytes" in row.kind else 0), row
    assert few.component_peak_bytes == many.component_peak_bytes


def test_model_offload_keeps_one_component_at_a_time_and_copies_the_weights_once() -> None:
    whole, offloaded = simulated(), simulated("model_cpu_offload")
    assert offloaded.component_peak_bytes[WHOLE] < whole.component_peak_bytes[WHOLE]
    assert offloaded.counts.total(FLOPS) == whole.counts.total(FLOPS)
    with shared_device().entered():
        pipeline = shared_workload().load(torch.float16)
        weights = sum(
            tensor.numel() * tensor.element_size()
            for part in (pipeline.unet, pipeline.vae, pipeline.text_encoder)
            for tensor in (*part.parameters(), *part.buffers())
        )
    moved = offloaded.counts.total(BYTES_TO_DEVICE) - whole.counts.total(BYTES_TO_DEVICE)
    assert moved == weights


def test_small_known_values_are_read_and_the_wait_is_counted(simulation: Simulation) -> None:
    levels = torch.linspace(1, 0, 5, device=DEVICE)
    assert (levels * 2).max().item() == 2
    assert (levels == 1).nonzero().tolist() == [[0]]
    levels[0] = 7
    view = levels[:2]
    view += 1
    assert levels.tolist()[:2] == [8, 1.75]
    counts = Counts.of(simulation.meter.tally)
    # .item(), .nonzero(), the copy of 7, and .tolist() of positions and of the levels.
    assert (counts.total(SYNCS), counts.total(COPIES_TO_HOST)) == (5, 2)
    # What nobody knows makes all views unknown.
    view.copy_(torch.randn(20_000, device=DEVICE)[:2])
    for read in (lambda: levels.sum().item(), levels.tolist):
        with pytest.raises(UnknownValueError):
            read()


def state() -> tuple[object, ...]:
    """What the simulation replaces in torch, and switches off."""
    functions = (torch.utils.swap_tensors, torch.cuda.is_available)
    return *functions, torch.cuda.Stream, gc.isenabled()


def test_nothing_of_the_simulation_stays_behind() -> None:
    before = state()
    simulate()
    with SimulatedDevice(draws=True).entered():
        assert not any(inside == outside for inside, outside in zip(state(), before, strict=True))
    assert state() == before
    assert not torch.zeros(2).is_cuda
