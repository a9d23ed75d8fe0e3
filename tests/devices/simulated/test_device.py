"""The simulated device as a device: what it lacks, what it models, and how it fails."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
import torch

from fixtures.devices import DeviceError, open_device
from fixtures.devices.needs import Need
from fixtures.devices.simulated import private
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.devices.simulated.kernels import CAVEAT, scratch_bytes
from fixtures.records.counts import BYTES_MOVED, FLOPS
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.records.run import WHOLE
from fixtures.scenarios import Scenario
from fixtures.techniques import CATALOGUE
from tests.support.fake_scenarios import observations_on
from tests.support.simulated_runs import simulate, simulated, small

aten = torch.ops.aten


def test_it_is_opened_by_name_and_profile() -> None:
    assert open_device("simulated").key == "simulated"
    other = open_device("simulated", "rtx-4090")
    assert other.key == "simulated-rtx-4090"
    assert other.hardware["accelerator"] == "NVIDIA GeForce RTX 4090 (simulated)"
    assert other.caveat == CAVEAT
    assert "cuDNN" in CAVEAT
    with pytest.raises(DeviceError, match=r"--perf-profile: .*'h2o'.*h200"):
        open_device("simulated", "h2o")


WITHOUT: tuple[Need, ...] = ("clock", "images", "compiler", "tracer", "cudnn")
WITH: tuple[Need, ...] = (
    *("accelerator", "streams", "tf32", "xformers", "fp16 arithmetic", "bf16 arithmetic"),
)
WITH_VALUES: tuple[Need, ...] = ("images", "cudnn")


def test_what_it_lacks_has_a_reason_and_depends_on_values_and_on_the_profile() -> None:
    device, drawing = SimulatedDevice(), SimulatedDevice(draws=True)
    assert all(device.missing(need) for need in WITHOUT)
    assert [device.missing(need) for need in WITH] == [None] * len(WITH)
    assert [drawing.missing(need) for need in WITH_VALUES] == [None] * len(WITH_VALUES)
    assert "Ampere" in str(SimulatedDevice("titan-rtx").missing("tf32"))


def test_a_torch_that_is_built_otherwise_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: False)
    monkeypatch.setattr(private, "_GUARD_TABLE", "no_such_table")
    with pytest.raises(DeviceError, match=rf"torch {re.escape(torch.__version__)}.*private\.py"):
        SimulatedDevice()


def test_out_of_memory_is_a_broken_scenario_with_one_sentence() -> None:
    card = SimulatedDevice("titan-rtx")
    for px, holds in ((1024, "the next larger card that holds it is h200"), (4096, "no card")):
        scenario = Scenario(small(width=px, height=px), CATALOGUE["naive_attention"])
        with pytest.raises(ScenarioError, match="ran out of memory on simulated-titan-rtx") as no:
            observations_on(card).active(scenario)
        assert no.value.outcome is Outcome.BROKEN
        where = rf"in fragments, in the denoiser \(Attention\); {holds}"
        assert re.search(where, no.value.reason)
    # The device still works.
    assert observations_on(card).active(Scenario(small(), CATALOGUE["fp16"])).component_peak_bytes


def test_tf32_bounds_the_same_work_at_a_higher_rate() -> None:
    device, big = SimulatedDevice(), small(width=512, height=512)
    device.profile = replace(device.profile, launch_s=0)  # which would bound a model this small
    fp32, tf32 = (simulate(name, workload=big, device=device) for name in ("fp32", "tf32"))
    assert fp32.counts == tf32.counts
    assert fp32.bound_ms is not None
    assert tf32.bound_ms is not None
    assert tf32.bound_ms < fp32.bound_ms


# The kernel model


def tensor(*shape: int, dtype: torch.dtype = torch.float16, **layout: Any) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="meta", **layout)


def test_the_side_that_is_not_channels_last_is_copied() -> None:
    last: dict[str, Any] = {"memory_format": torch.channels_last}
    plain, turned = tensor(1, 8, 4, 4), tensor(1, 8, 4, 4, **last)
    weight, turned_weight = tensor(8, 8, 3, 3), tensor(8, 8, 3, 3, **last)
    for sides, copied in (
        ([plain, weight], []),
        ([turned, turned_weight], []),
        ([plain, turned_weight], [2 * plain.numel()]),
        ([turned, weight], [2 * weight.numel()]),
        ([plain[:, :, ::2], weight], [plain.numel()]),
    ):
        assert scratch_bytes(aten.convolution.default, sides) == copied
    assert scratch_bytes(aten.native_group_norm.default, [turned]) == [2 * turned.numel()]
    assert scratch_bytes(aten.native_group_norm.default, [plain]) == []


@pytest.mark.parametrize(
    ("operation", "shape"),
    [
        (aten._scaled_dot_product_efficient_attention.default, (1, 2, 10)),
        (aten._efficient_attention_forward.default, (1, 10, 2)),
    ],
)
def test_wide_heads_accumulate_in_fp32(operation: Any, shape: tuple[int, ...]) -> None:
    for dtype, width, scratch in (
        (torch.float16, 128, []),
        (torch.float16, 160, [4 * 10 * 2 * 160]),
        (torch.float32, 160, []),
    ):
        part = tensor(*shape, width, dtype=dtype)
        assert scratch_bytes(operation, [part, part, part]) == scratch


@pytest.mark.parametrize("technique", ["fp16", "model_cpu_offload"])
def test_what_is_alive_at_the_peak_and_the_work_add_up_to_the_figures(technique: str) -> None:
    trace = simulated(technique)
    assert trace.at_peak is not None
    held_bytes = trace.at_peak.held_bytes
    assert sum(held_bytes.values()) == trace.component_peak_bytes[WHOLE]
    assert trace.component_peak_bytes[trace.at_peak.phase] == trace.component_peak_bytes[WHOLE]
    assert sum(flops for _, flops, _ in trace.work.values()) == trace.counts.total(FLOPS)
    assert sum(moved for _, _, moved in trace.work.values()) == trace.counts.total(BYTES_MOVED)
    weights = [name for name in held_bytes if "weights" in name]
    copied = [name for name in held_bytes if "copied in float16" in name]
    # Offloaded weights are copied in when their component begins.
    assert (bool(weights), bool(copied)) == (technique == "fp16", technique != "fp16")
