"""Loaded pipelines: what fits is loaded once, what was not used the longest goes first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from fixtures.devices.ledger import resident_tensors
from fixtures.devices.storages import host_bytes
from fixtures.workloads import base
from fixtures.workloads.base import Workload
from fixtures.workloads.loaded import LoadedPipelines
from tests.support.simulated_runs import shared_device, small

HALF = torch.float16


class Loads:
    """Workloads that note by name what they load, where so many pipelines of `HALF` fit."""

    def __init__(self, fitting: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        self.size_bytes = host_bytes(resident_tensors(small().load(HALF)))
        self.pipelines = LoadedPipelines(fitting * self.size_bytes)
        monkeypatch.setattr(base, "PIPELINES", self.pipelines)

    def workload(self, name: str) -> Workload:
        whole = small()

        def source(*arguments: Any, **options: Any) -> Any:
            self.names.append(name)
            return whole.source(*arguments, **options)

        return replace(whole, name=name, source=source)


def weight(pipeline: Any) -> torch.Tensor:
    stored: torch.Tensor = pipeline.unet.conv_in.weight
    return stored


def test_what_fits_is_loaded_once_and_the_least_recently_used_goes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loads = Loads(2.5, monkeypatch)
    a, b, c = map(loads.workload, "abc")
    for workload in (a, b, a, b, a):
        workload.load(HALF)
    assert loads.names == ["a", "b"]
    c.load(HALF)  # in the place of b
    a.load(HALF)
    c.load(HALF)
    assert loads.names == ["a", "b", "c"]
    b.load(HALF)  # in the place of a
    c.load(HALF)
    a.load(HALF)
    assert loads.names == ["a", "b", "c", "b", "a"]


def test_what_does_not_fit_is_handed_out_and_what_was_kept_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loads = Loads(1.5, monkeypatch)
    workload = loads.workload("a")
    for dtype in (HALF, torch.float32, torch.float32, HALF):
        assert weight(workload.load(dtype)).dtype is dtype
    assert loads.names == ["a"] * 3


def test_a_pipeline_goes_with_its_workload(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = Loads(2.5, monkeypatch)
    a, b, c = map(loads.workload, "abc")
    b.load(HALF)
    a.load(HALF)
    del a
    c.load(HALF)
    b.load(HALF)
    assert loads.names == ["b", "a", "c"], "a's place was free"


def test_fake_tensors_take_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = Loads(0.0, monkeypatch)
    workload = loads.workload("a")
    with shared_device().entered():
        for _ in range(2):
            workload.load(HALF)
    assert loads.names == ["a"]


def test_what_a_scenario_does_to_its_components_is_not_another_s() -> None:
    workload = small()
    first, again = workload.load(HALF), workload.load(HALF)
    for name, component in again.components.items():
        assert component is None or component is not getattr(first, name)
    assert torch.equal(weight(first), weight(again))
    assert weight(first).data_ptr() != weight(again).data_ptr()
    words = len(first.tokenizer)
    first.tokenizer.add_tokens(["a word of its own"])
    first.tokenizer.padding_side = "left"
    first.scheduler.set_timesteps(3)
    second = workload.load(HALF)
    assert len(first.tokenizer) == words + 1
    assert len(second.tokenizer) == words
    assert second.tokenizer.padding_side == "right"
    assert second.scheduler.num_inference_steps is None
    assert dict(first.config) == dict(second.config)
