"""Quantized weights on the simulated device: their parts are moved, held, and computed with."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.devices.simulated.memory import weights_of
from fixtures.devices.simulated.private import device_type
from fixtures.devices.tensors import stored_bytes, stored_tensors
from fixtures.records.counts import BYTES_TO_DEVICE, OPERATIONS, Counts
from tests.devices.test_tensors import COLUMNS, PACKED_BYTES, ROWS, pipeline_of
from tests.support.packed import Packed, pack


@pytest.mark.parametrize("draws", [False, True], ids=["without values", "with values"])
def test_the_device_holds_the_parts_and_not_what_they_stand_for(draws: bool) -> None:
    device = SimulatedDevice(draws=draws)
    with device.entered(), torch.no_grad():
        layer = pack(torch.nn.Linear(COLUMNS, ROWS, bias=False))
        pipeline = pipeline_of(layer)
        simulation = device._simulation
        assert simulation is not None
        with device.observe(pipeline):
            layer.to("cuda")
            counts = Counts.of(simulation.meter.tally)
        assert isinstance(layer.weight, Packed)
        assert simulation.memory.storage_bytes == PACKED_BYTES
        assert counts.total(BYTES_TO_DEVICE) == PACKED_BYTES
        assert [device_type(part) for part in stored_tensors(layer.weight)] == ["cuda", "cuda"]
        assert set(weights_of(pipeline).values()) == {
            "denoiser weights int8",
            "denoiser weights float32",
        }
        with device.observe(pipeline) as trace:
            made = layer(torch.ones((2, COLUMNS), device="cuda"))
        assert device_type(made) == "cuda"
        assert trace.counts.by_name(OPERATIONS)["aten::_to_copy"] == 1
        assert trace.counts.by_name(OPERATIONS)["aten::mm"] == 1


def test_values_are_those_of_the_host() -> None:
    torch.manual_seed(0)
    layer = torch.nn.Linear(COLUMNS, ROWS, bias=False)
    weight, inputs = layer.weight.detach().clone(), torch.rand(2, COLUMNS)
    with torch.no_grad():
        wanted = pack(layer)(inputs)
        with SimulatedDevice(draws=True).entered():
            there = torch.nn.Linear(COLUMNS, ROWS, bias=False)
            there.weight = torch.nn.Parameter(weight)
            product = torch.from_numpy(pack(there).to("cuda")(inputs.to("cuda")).cpu().numpy())
    torch.testing.assert_close(product, wanted)


def test_a_model_is_written_to_a_folder_and_loaded_from_there(tmp_path: Path) -> None:
    """Loaders of quantized weights read what a file says of itself."""
    import safetensors.torch

    with SimulatedDevice().entered():
        weight = torch.nn.Parameter(torch.ones(COLUMNS))
        path = tmp_path / "model.safetensors"
        safetensors.torch.save_file({"weight": weight}, path, metadata={"format": "pt"})
        with safetensors.safe_open(path, framework="pt") as opened:
            assert opened.metadata() == {"format": "pt"}
        assert safetensors.torch.load_file(path)["weight"].shape == (COLUMNS,)
        assert stored_bytes(weight) == COLUMNS * 4
