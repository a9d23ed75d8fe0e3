"""TorchScript on fake tensors with values: what is traced, saved and loaded runs on the device."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as functional

from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.devices.simulated.private import FakeTensor, real_values
from fixtures.devices.simulated.shadows import set_shadow, shadow_of
from fixtures.devices.simulated.simulation import DEVICE, UnknownValueError
from fixtures.records.counts import OPERATIONS, Counts

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*torch.jit.* is deprecated:DeprecationWarning",
    "ignore:.*torch.jit.* is deprecated:FutureWarning",
)
WIDTH = 64
SHAPE = (1, 2, 16, WIDTH)


class Attends(torch.nn.Module):
    """Weights, a buffer, a tensor that it makes itself, and fused attention."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(WIDTH, WIDTH)
        self.register_buffer("shift", torch.full((WIDTH,), 0.5))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Attend to what the weights make of the input."""
        made = self.linear(values) + self.shift
        made = made * torch.arange(WIDTH, device=values.device, dtype=values.dtype)
        return functional.scaled_dot_product_attention(made, made, made)


@pytest.fixture
def device() -> Iterator[SimulatedDevice]:
    device = SimulatedDevice(draws=True)
    with device.entered(), torch.no_grad():
        yield device


def an_input(place: str = "cuda", dtype: torch.dtype = torch.float16) -> torch.Tensor:
    return torch.linspace(-1, 1, 2 * 16 * WIDTH).reshape(SHAPE).to(place, dtype)


def traced(module: Any, values: torch.Tensor) -> Any:
    return torch.jit.trace(module, (values,), check_trace=False)


def loaded(script: Any, folder: Path, place: Any = None) -> Any:
    torch.jit.save(script, folder / "graph.pt")
    return torch.jit.load(folder / "graph.pt", map_location=place)


def numbers(tensor: torch.Tensor) -> list[float]:
    shadow = shadow_of(tensor)
    assert shadow is not None
    with real_values():
        found: list[float] = shadow.values.flatten().tolist()
    return found


def test_a_graph_computes_what_its_module_computes(device: SimulatedDevice, tmp_path: Path) -> None:
    module, values = Attends().to(DEVICE, torch.float16), an_input()
    simulation: Any = device._simulation
    simulation.begin()
    expected = numbers(module(values))
    operations = Counts.of(simulation.meter.tally).by_name(OPERATIONS)
    assert operations["aten::_scaled_dot_product_cudnn_attention"] == 1
    script = traced(module, values)
    for graph in (script, loaded(script, tmp_path), loaded(script, tmp_path, "cuda")):
        simulation.begin()
        result = graph(values)
        assert Counts.of(simulation.meter.tally).by_name(OPERATIONS) == operations
        for _ in range(2):  # TorchScript watches a first call, and rewrites the graph for others
            result = graph(values)
        assert isinstance(result, FakeTensor)
        assert result.device == DEVICE
        assert numbers(result) == expected


def test_a_traced_module_shares_its_weights_and_a_loaded_one_has_its_own(
    device: SimulatedDevice, tmp_path: Path
) -> None:
    module, values = Attends().to(DEVICE, torch.float16), an_input()
    simulation: Any = device._simulation
    before = simulation.memory.storage_bytes
    script = traced(module, values)
    assert script.linear.weight is module.linear.weight
    assert simulation.memory.storage_bytes == before
    graph = loaded(script, tmp_path)
    held = before + 2 * (WIDTH * WIDTH + 2 * WIDTH)
    assert simulation.memory.storage_bytes == held
    graph.to("cpu")
    assert {part.device.type for part in (*graph.parameters(), *graph.buffers())} == {"cpu"}
    assert simulation.memory.storage_bytes < held
    graph.to(DEVICE)
    assert simulation.memory.storage_bytes == held
    assert numbers(graph(values)) == numbers(module(values))
    module.linear.weight.mul_(2)
    assert numbers(script(values)) == numbers(module(values)) != numbers(graph(values))
    convolution = torch.nn.Conv2d(4, 4, 3).to(DEVICE)
    convolution = convolution.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    graph = loaded(traced(convolution, torch.ones(1, 4, 8, 8, device=DEVICE)), tmp_path)
    assert graph.weight.stride() == convolution.weight.stride() == (36, 1, 12, 4)


def test_the_host_traces_for_itself(device: SimulatedDevice, tmp_path: Path) -> None:
    module, values = Attends(), an_input("cpu", torch.float32)
    graph = loaded(traced(module, values), tmp_path, "cpu")
    assert graph(values).device.type == "cpu"
    torch.testing.assert_close(graph(values), module(values))


def test_weights_without_values_are_refused_and_stay_where_they_are(
    device: SimulatedDevice,
) -> None:
    module, values = Attends().to(DEVICE, torch.float16), an_input()
    bias, weight = module.linear.bias, module.linear.weight
    set_shadow(bias, None)
    with pytest.raises(UnknownValueError, match="TorchScript reads values"):
        traced(module, values)
    assert module.linear.bias is bias
    assert module.linear.weight is weight
