"""The CUDA device, on a fake `torch.cuda`."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from fixtures.catalogue.techniques import CATALOGUE
from fixtures.devices import DeviceError
from fixtures.devices.cuda import CudaDevice, device_key
from fixtures.records.run import WHOLE
from fixtures.records.units import MIB
from tests.devices.fake_cuda import GIB, FakeCuda


class Allocating(nn.Module):
    """A component that needs `scratch` bytes while it runs and keeps `kept` of them."""

    def __init__(self, cuda: FakeCuda, *scratch: int, kept: int = 0) -> None:
        super().__init__()
        self.on, self.scratch, self.kept, self.calls = cuda, scratch, kept, 0

    def forward(self) -> None:
        size = self.scratch[self.calls % len(self.scratch)]
        self.calls += 1
        if size < 0:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        self.on.allocate(size)
        self.on.free(size - self.kept)


def pipeline_of(cuda: FakeCuda, text: int = 10, unet: tuple[int, ...] = (50, 70)) -> Any:
    return SimpleNamespace(
        text_encoder=Allocating(cuda, text, kept=1),
        unet=Allocating(cuda, *unet),
        vae=SimpleNamespace(decoder=Allocating(cuda, 40)),
    )


EMPTY: Any = SimpleNamespace()


@pytest.fixture(autouse=True)
def without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device empties real caches of torch, too: not those of the machine that runs this."""
    for clear in ("_cuda_clearCublasWorkspaces", "_host_emptyCache"):
        monkeypatch.setattr(torch._C, clear, lambda: None, raising=False)


def call(pipeline: Any) -> None:
    pipeline.text_encoder()
    pipeline.unet()
    pipeline.unet()
    pipeline.vae.decoder()


def test_what_the_management_library_reports_belongs_to_the_hardware() -> None:
    reported = SimpleNamespace(facts={"power_limit_w": 700}, sentence=lambda: "driver 1")
    cuda = FakeCuda()
    cuda.properties.uuid = "1234"
    device = CudaDevice(cuda=cuda, nvml={"1234": reported}.get)  # type: ignore[arg-type]
    assert device.hardware["power_limit_w"] == 700
    assert device.watch().sentence() == "driver 1"
    assert device.steady_clock
    without = CudaDevice(cuda=cuda, nvml=lambda uuid: None)
    assert not without.steady_clock
    assert "power_limit_w" not in without.hardware
    assert (without.watch().disturbance(), without.watch().sentence()) == (None, "")


def test_the_peak_of_each_phase_is_its_own_and_includes_what_was_there() -> None:
    cuda = FakeCuda()
    cuda.allocate(5000)  # as a warm-up needs it
    cuda.free(4000)
    pipeline = pipeline_of(cuda)
    with CudaDevice(cuda=cuda).observe(pipeline) as trace:
        cuda.allocate(500)
        cuda.free(500)
        call(pipeline)
        pipeline.unet()  # which needs less than at first
    assert trace.component_peak_bytes == {
        "text_encoder": 1010,
        "denoiser": 1071,
        "vae": 1041,
        WHOLE: 1500,
    }
    assert trace.calls == {"text_encoder": 1, "denoiser": 3, "vae": 1}


def test_the_workspaces_of_an_earlier_call_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = FakeCuda()
    monkeypatch.setattr(
        torch._C, "_cuda_clearCublasWorkspaces", cuda.clear_workspaces, raising=False
    )
    device = CudaDevice(cuda=cuda)
    peaks = []
    for _ in range(2):
        with device.observe(EMPTY) as trace:
            if not cuda.workspace:
                cuda.workspace = 32 * MIB
                cuda.allocate(32 * MIB)
            cuda.allocate(5)
            cuda.free(5)
        peaks.append(trace.component_peak_bytes[WHOLE])
        assert not trace.faults
    assert peaks == [32 * MIB + 5] * 2
    cuda.log.clear()
    device.release()
    assert cuda.log == ["synchronize", "clear workspaces", "empty_cache"]


def test_out_of_memory_passes_through() -> None:
    cuda = FakeCuda()
    pipeline = pipeline_of(cuda, unet=(50, -1))
    device = CudaDevice(cuda=cuda)
    with pytest.raises(torch.cuda.OutOfMemoryError), device.observe(pipeline):
        call(pipeline)


def test_inside_ieee_fp32_nothing_runs_in_tf32_and_leaving_restores_what_was() -> None:
    backends: Any = torch.backends
    settings = (backends.cuda.matmul, backends.cudnn.conv, backends.cudnn.rnn)
    before = [setting.fp32_precision for setting in settings]
    assert before != ["ieee"] * 3
    with pytest.raises(KeyError) as raised, CudaDevice(cuda=FakeCuda()).ieee_fp32():
        raise KeyError(*(setting.fp32_precision for setting in settings))
    assert raised.value.args == ("ieee",) * 3
    assert [setting.fp32_precision for setting in settings] == before


def test_a_device_that_is_not_there_is_refused_in_one_line() -> None:
    cuda = FakeCuda()
    cuda.is_there = False
    with pytest.raises(DeviceError, match=r"^torch .*choose --perf-device cpu$"):
        CudaDevice(cuda=cuda)


def test_the_key_is_a_name_of_a_folder() -> None:
    assert device_key("NVIDIA A100-SXM4-80GB MIG 1g.10gb") == "nvidia-a100-sxm4-80gb-mig-1g-10gb"
    assert device_key("NVIDIA ../../etc") == "nvidia-etc"


def test_the_device_knows_its_key_its_hardware_and_its_clock() -> None:
    cuda = FakeCuda()
    device = CudaDevice(cuda=cuda)
    assert device.key == "nvidia-h200"
    assert device.torch_device == torch.device("cuda", 0)
    assert device.hardware == {
        "accelerator": "NVIDIA H200",
        "memory_gib": 139,
        "compute_capability": "9.0",
        "multiprocessors": 132,
    }
    assert [technique.id for technique in CATALOGUE if technique.untimed(device)] == []
    first = device.clock_s()
    assert cuda.log == ["synchronize"], "the clock waits for what is queued"
    assert device.clock_s() >= first


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    ampere = CudaDevice(cuda=FakeCuda(capability=(8, 0)))
    titan = CudaDevice(cuda=FakeCuda("NVIDIA TITAN RTX", 24 * GIB, (7, 5)))
    assert ampere.missing("tf32") is None
    assert titan.missing("tf32") == "NVIDIA TITAN RTX has no TF32, which came with Ampere"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert ampere.missing("compiler") == "torch.compile needs Triton, which is not installed"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    for name in ("xformers.ops", "xformers"):  # which lack what is imported from them
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    assert ampere.missing("xformers") == (
        "xFormers does not run on this device with this torch (ImportError)"
    )
