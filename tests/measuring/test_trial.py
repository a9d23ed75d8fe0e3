"""What a trial takes of a card: the same on cards of the same kernels, and where it ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fixtures.devices.simulated import device
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.devices.simulated.profiles import Profile, find_card
from fixtures.measuring.observation import observe
from fixtures.measuring.recording import record_observation, record_of
from fixtures.measuring.trial import try_configuration
from fixtures.records.fit import MAX_CONTEXT_BYTES, Configuration
from fixtures.records.run import RESULTS
from fixtures.records.units import MIB
from fixtures.scenarios import Scenario
from fixtures.techniques import CATALOGUE
from tests.support.runs import run_record
from tests.support.simulated_runs import small

BRIEF = small(width=64, height=64)


def tried(technique: str, card: Profile) -> Configuration:
    return try_configuration(BRIEF, [CATALOGUE[technique]], SimulatedDevice(card, trial=True))


@pytest.mark.parametrize("technique", ["fp16", "model_cpu_offload"])
def test_cards_of_the_same_kernels_are_asked_for_the_same(technique: str) -> None:
    ampere, larger, hopper = (
        tried(technique, find_card(card)) for card in ("rtx-3060", "a100-80gb", "h100")
    )
    assert larger == replace(ampere, bound_ms=larger.bound_ms)
    # cuBLAS keeps 32 MiB there.
    assert hopper.peak_bytes > larger.peak_bytes


def test_an_observation_names_the_cards_that_fit_it(monkeypatch: pytest.MonkeyPatch) -> None:
    card = find_card("rtx-4090")
    needed_bytes = tried("fp16", card).needed_bytes + MAX_CONTEXT_BYTES
    sizes = {"tight": needed_bytes - 8 * MIB, "roomy": needed_bytes + 8 * MIB}
    others = {name: replace(card, id=name, memory_bytes=size) for name, size in sizes.items()}
    monkeypatch.setattr(device, "PROFILES", others)
    scenario = Scenario(BRIEF, CATALOGUE["fp16"])
    run = run_record(recorded := record_of(run_record(), scenario))
    record_observation(recorded, observe(scenario, SimulatedDevice(card)), None)
    assert RESULTS.load(RESULTS.dump(run), "here").scenarios[scenario.id].cards == ("roomy",)


def test_a_card_with_a_byte_too_few_is_where_the_memory_runs_out() -> None:
    card = find_card("rtx-4090")
    exact = replace(card, memory_bytes=tried("fp16", card).needed_bytes + MAX_CONTEXT_BYTES)
    too_small = replace(exact, memory_bytes=exact.memory_bytes - 1)
    assert tried("fp16", exact).refusal is None
    assert "out of memory" in (tried("fp16", too_small).refusal or "")
