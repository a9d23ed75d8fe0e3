"""Work that nobody asked for is really done, and each judgement that sees it is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fixtures.baselines import BaselineStore
from fixtures.devices import open_device
from fixtures.measurement import Observation, observe
from fixtures.power.extra_work import (
    ALREADY_SO,
    KINDS,
    NOT_APPLIED,
    WORK,
    seen_by,
    try_all,
    with_work,
)
from fixtures.scenarios import Scenario, scenarios
from fixtures.verdicts import Case
from tests.records import MIB, entry

FOUND = {one.technique.id: one for one in scenarios(["storybook"])}
COUNTERS = {"aten::mm": 1000, "aten::add": 400}


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
    assert spoilt.counters[operation] == sound.counters.get(operation, 0) + 1
    stored = entry(counters=sound.counters, peak_memory_bytes=sound.peak_bytes)
    case = Case("storybook-attention_slicing", stored, {})
    assert seen_by(sound, case, device) is None
    assert seen_by(spoilt, case, device) == "counters"


def test_a_technique_that_is_not_applied_is_not_in_effect(sound: Observation) -> None:
    plain = observe(with_work(FOUND["attention_slicing"], NOT_APPLIED), open_device("cpu"))
    assert sound.inactive is None
    assert plain.inactive is not None
    assert seen_by(plain, Case("s", None, {}), open_device("cpu")) == "activation"


def test_memory_alone_is_seen_too(sound: Observation) -> None:
    stored = entry(counters=sound.counters, peak_memory_bytes={"whole": MIB})
    assert seen_by(sound, Case("s", stored, {}), open_device("cpu")) == "peak memory"


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(KeyError, match="magic"):
        with_work(FOUND["fp32"], "magic")


def test_every_counted_scenario_gets_every_kind_that_can_show_in_it(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    for name in ("fp32", "bf16", "sdpa", "torch_compile"):
        counted = {} if name == "torch_compile" else COUNTERS
        store.stage("cpu", "storybook", name, entry(counters=counted))
    store.commit()

    def observer(scenario: Scenario, device: Any) -> Observation:
        picture: Any = None
        return Observation(
            scenario.id,
            {"whole": 512 * MIB, "denoiser": 500 * MIB},
            COUNTERS,
            1.0,
            picture,
            None,
            (),
        )

    trials = try_all(list(FOUND.values()), open_device("cpu"), store, lambda text: None, observer)
    tried = {(trial.scenario.removeprefix("storybook-"), trial.kind) for trial in trials}
    expected = {(name, kind) for name in ("fp32", "bf16", "sdpa") for kind in WORK}
    assert tried == expected | {("bf16", NOT_APPLIED)}
    assert {trial.seen_by for trial in trials} == {None}
    assert set(ALREADY_SO) <= set(FOUND)
    assert (*WORK, NOT_APPLIED) == KINDS


def test_a_scenario_keeps_its_name() -> None:
    scenario = FOUND["bf16"]
    assert with_work(scenario, "copy").id == scenario.id
    assert replace(scenario) == scenario
