"""Quantized weights as `fit` models them: their bytes, what they ask for, and the program."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fixtures.catalogue.matrix import Scenario
from fixtures.catalogue.techniques import CATALOGUE
from fixtures.catalogue.techniques.quantized_storage import FORMATS, held_bytes, linear_layers
from fixtures.catalogue.techniques.snippets import loading_lines
from fixtures.catalogue.techniques.technique import Technique
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.devices.tensors import stored_bytes
from fixtures.records.fit import Configuration
from fixtures.records.run import WHOLE
from fixtures.worker.trial import store_denoisers, try_configuration
from tests.support.libraries import skipped_without_libraries
from tests.support.small_workloads import small_workload

WORKLOAD = small_workload("flux")
WORKLOAD = replace(WORKLOAD, call=replace(WORKLOAD.call, steps=2))
INT8 = CATALOGUE["torchao_int8_weight_only"]


def tried(*names: str) -> Configuration:
    chosen = [CATALOGUE[name] for name in names]
    return try_configuration(WORKLOAD, chosen, SimulatedDevice("rtx-4090", trial=True))


@pytest.mark.parametrize("name", FORMATS)
def test_every_layer_that_the_format_takes_holds_its_bytes_and_still_computes(name: str) -> None:
    pipeline = WORKLOAD.load(torch.bfloat16)
    storage = FORMATS[name].storage
    before = linear_layers(pipeline.transformer)
    taken = storage.takes(before)
    store_denoisers(pipeline, storage)
    after = linear_layers(pipeline.transformer)
    assert taken
    assert {path for path, layer in after.items() if layer is not before[path]} == set(taken)
    for path, layer in taken.items():
        assert held_bytes(after[path]) == storage.weight_bytes(layer)
        assert after[path].bias is layer.bias
    path, layer = next(iter(taken.items()))
    given = torch.ones(2, layer.in_features, dtype=torch.bfloat16)
    assert after[path](given).shape == layer(given).shape


def test_the_least_bits_need_the_least_and_they_are_modelled() -> None:
    plain, eight, four = map(tried, ("bf16", INT8.id, "bitsandbytes_nf4"))
    assert plain.peak_bytes > eight.peak_bytes > four.peak_bytes
    assert [trial.is_modelled for trial in (plain, eight, four)] == [False, True, True]
    offloaded = tried("bitsandbytes_nf4", "model_cpu_offload")
    assert offloaded.peak_bytes < four.peak_bytes
    assert "pipeline.enable_model_cpu_offload(" in offloaded.program


@pytest.mark.parametrize(
    "technique", [pytest.param(INT8, marks=skipped_without_libraries(INT8), id=INT8.id)]
)
def test_a_modelled_peak_is_that_of_the_library(technique: Technique) -> None:
    """Of a small transformer; what the library holds beside its weights is the difference."""
    plain = SimulatedDevice("rtx-4090")
    scenario = Scenario(WORKLOAD, technique)
    with scenario.running(plain) as pipeline, plain.observe(pipeline) as trace:
        WORKLOAD.draw(pipeline, steps=2)
        stored = sum(map(stored_bytes, pipeline.transformer.parameters()))
    assert stored > 0
    peak_bytes = tried(technique.id).peak_bytes
    assert peak_bytes == pytest.approx(trace.component_peak_bytes[WHOLE], rel=0.02)


@pytest.mark.parametrize("name", FORMATS)
def test_the_program_loads_the_denoiser_in_the_format(name: str) -> None:
    pipeline = WORKLOAD.load(torch.bfloat16)
    lines = loading_lines(pipeline, "owner/name", torch.bfloat16, name)
    compile(lines, "lines", "exec")
    loads = 'PipelineQuantizationConfig(quant_mapping={"transformer": config}),\n)'
    assert loads in lines
    assert FORMATS[name].config.partition("(")[0] in lines.splitlines()[1]
    assert "{dtype}" not in lines
