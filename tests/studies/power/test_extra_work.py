"""Work that nobody asked for is really done, and the judgement that detects it is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fixtures.devices import Device, open_device
from fixtures.measuring.observation import Observation, observe
from fixtures.records.baseline_store import BaselineStore
from fixtures.records.counts import Counts
from fixtures.records.run import WHOLE
from fixtures.scenarios import Scenario, scenarios
from fixtures.studies.power.extra_work import (
    ALREADY_SO,
    KINDS,
    NOT_APPLIED,
    WORK,
    detected_by,
    try_all,
    with_work,
)
from fixtures.verdicts import Case
from tests.support.fake_device import FakeDevice
from tests.support.runs import MIB, counts, entry

FOUND = {one.technique.id: one for one in scenarios(["storybook"])}
COUNTED = counts(mm=1000, add=400)


@pytest.fixture(scope="module")
def sound() -> Observation:
    return observe(FOUND["attention_slicing"], open_device("cpu"))


@pytest.mark.parametrize(
    ("kind", "operation"),
    [
        ("copy", "aten::clone"),
        ("synchronisation", "aten::_local_scalar_dense"),
        ("operation", "aten::neg"),
        ("upcast", "aten::_to_copy"),
    ],
)
def test_each_kind_is_done_once_more_and_seen(
    kind: str, operation: str, sound: Observation
) -> None:
    device = open_device("cpu")
    spoilt = observe(with_work(FOUND["attention_slicing"], kind), device)
    before = sound.counts.operations.get(operation, 0)
    assert spoilt.counts.operations[operation] == before + 1
    case = _case(sound)
    assert detected_by(sound, case, device) is None
    assert detected_by(spoilt, case, device) == "counters"


def test_a_technique_that_is_not_applied_is_not_in_effect(sound: Observation) -> None:
    device = open_device("cpu")
    plain = observe(with_work(FOUND["attention_slicing"], NOT_APPLIED), device)
    assert sound.inactive is None
    assert plain.inactive is not None
    assert detected_by(plain, _case(sound), device) == "activation"


def test_memory_alone_is_detected_too(sound: Observation) -> None:
    smaller = entry(counts=sound.counts, component_peak_bytes={WHOLE: MIB})
    case = Case(sound.scenario, smaller, {})
    assert detected_by(sound, case, FakeDevice()) == "peak memory"


def test_less_work_is_no_detection(sound: Observation) -> None:
    more = Counts(operations={**sound.counts.operations, "aten::more": 1})
    stored = entry(counts=more, component_peak_bytes=sound.component_peak_bytes)
    fewer = replace(sound, counts=Counts(operations=sound.counts.operations))
    assert detected_by(fewer, Case(sound.scenario, stored, {}), FakeDevice()) is None


def _case(observation: Observation) -> Case:
    peaks = observation.component_peak_bytes
    stored = entry(counts=observation.counts, component_peak_bytes=peaks)
    return Case(observation.scenario, stored, {})


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(KeyError, match="magic"):
        with_work(FOUND["fp32"], "magic")


def test_every_counted_scenario_gets_every_kind_that_can_show_in_it(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    for name in ("fp32", "bf16", "sdpa", "torch_compile"):
        counted = Counts() if name == "torch_compile" else COUNTED
        store.stage("fake", "storybook", name, entry(counts=counted))
    store.commit()

    def observer(scenario: Scenario, device: Device) -> Observation:
        image: Any = None
        peaks = {WHOLE: 512 * MIB, "denoiser": 500 * MIB}
        return Observation(scenario.id, peaks, COUNTED, 1.0, image, None, ())

    said: list[str] = []
    detections = try_all(list(FOUND.values()), FakeDevice(), store, said.append, observer)
    tried = {(one.scenario.removeprefix("storybook-"), one.kind) for one in detections}
    expected = {(name, kind) for name in ("fp32", "bf16", "sdpa") for kind in WORK}
    assert tried == expected | {("bf16", NOT_APPLIED)}
    assert len(detections) == len(tried) == len(said)
    assert {one.by for one in detections} == {None}


def test_what_is_left_out_exists() -> None:
    assert set(ALREADY_SO) <= set(FOUND)
    assert (*WORK, NOT_APPLIED) == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_a_scenario_keeps_its_name_and_is_put_in_no_other_s_place(kind: str) -> None:
    scenario = FOUND["bf16"]
    before = replace(scenario)
    assert with_work(scenario, kind).id == scenario.id
    assert scenario == before
