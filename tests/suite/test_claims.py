"""Whether the docs' claims hold here: a figure against another's, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fixtures.catalogue.matrix import Scenario
from fixtures.catalogue.techniques.technique import Claim, less
from fixtures.devices import Device
from fixtures.metrics.latency_verdicts import LATENCY
from fixtures.metrics.peak_memory import PEAK_MEMORY
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.records.run import FAILS, HOLDS, NOT_COMPARED
from fixtures.suite.measurements import Claims, Compared, Measurements
from fixtures.worker.observation import Observation
from tests.support.fake_device import FakeDevice
from tests.support.fake_scenarios import observation, observations_on
from tests.support.scenarios import find_scenario

NAIVE = "naive_attention"
SELECTED = ("storybook-sdpa", "storybook-naive_attention", "storybook-sequential_cpu_offload")


def compared(
    claim: Claim,
    *,
    peaks: Mapping[str, Mapping[str, int]] | None = None,
    speedups: Mapping[str, float | None] | None = None,
    broken: str = "",
    selected: tuple[str, ...] = SELECTED,
    no_latency: str | None = None,
    device: FakeDevice | None = None,
    technique: str = "sdpa",
) -> Compared:
    """What becomes of a claim.

    Args:
        claim: is compared.
        peaks: by technique and component.
        speedups: by technique.
        broken: the technique that fails.
        selected: the scenarios of the run.
        no_latency: why latencies are not measured.
        device: where it runs.
        technique: whose claim it is.
    """

    def fail_if_broken(scenario: Scenario) -> None:
        if scenario.technique.id == broken:
            raise ScenarioError(scenario.id, Outcome.BROKEN, "ran out of memory")

    def observe(scenario: Scenario, device: Device) -> Observation:
        fail_if_broken(scenario)
        shown = (peaks or {}).get(scenario.technique.id, {})
        return observation(scenario.id, component_peak_bytes=shown)

    def speedup(scenario: Scenario) -> float | None:
        fail_if_broken(scenario)
        return (speedups or {})[scenario.technique.id]

    observations = observations_on(device or FakeDevice(), observe)
    fake = SimpleNamespace(observations=observations, speedup=speedup)
    scenario = find_scenario("storybook", technique)
    return Claims(cast(Measurements, fake), selected, no_latency).compared(claim, scenario)


@pytest.mark.parametrize(
    ("mine", "outcome"), [(2**20 - 1, HOLDS), (2**20, FAILS), (2**20 + 1, FAILS)]
)
def test_a_claim_of_less_memory_holds_if_it_is_less(mine: int, outcome: str) -> None:
    result = compared(
        less(PEAK_MEMORY, than=NAIVE), peaks={"sdpa": {"whole": mine}, NAIVE: {"whole": 2**20}}
    )
    assert result.outcome == outcome
    assert result.sentence.endswith("has 1.00 MiB against 1.00 MiB")
    assert result.sentence.startswith("claims less peak memory than naive_attention, ")


def test_a_claim_about_a_component_is_held_to_that_component() -> None:
    peaks = {"sdpa": {"whole": 9, "denoiser": 4}, NAIVE: {"whole": 9, "denoiser": 5}}
    claim = less(PEAK_MEMORY, than=NAIVE, component="denoiser")
    assert compared(claim, peaks=peaks).outcome == HOLDS
    assert compared(less(PEAK_MEMORY, than=NAIVE), peaks=peaks).outcome == FAILS


@pytest.mark.parametrize(("mine", "outcome"), [(2.1, HOLDS), (2.0, FAILS), (1.9, FAILS)])
def test_a_claim_of_less_latency_holds_if_the_speed_up_is_larger(mine: float, outcome: str) -> None:
    result = compared(less(LATENCY, than=NAIVE), speedups={"sdpa": mine, NAIVE: 2.0})
    assert result.outcome == outcome
    assert result.sentence.endswith(f"has {1 / mine:.3f} against 0.500")


def test_the_reference_is_as_fast_as_itself_and_need_not_be_part_of_the_run() -> None:
    result = compared(less(LATENCY), speedups={"sdpa": 1.25})
    assert (result.outcome, result.sentence) == (
        HOLDS,
        "claims less latency than fp32, has 0.800 against 1.000",
    )
    peaks = {"sdpa": {"whole": 1}, "fp32": {"whole": 2}}
    assert compared(less(PEAK_MEMORY), peaks=peaks).outcome == HOLDS


# Why there is nothing to compare


def reason(claim: Claim, **options: Any) -> str:
    result = compared(claim, **options)
    assert result.outcome == NOT_COMPARED
    assert result.sentence.startswith(f"{claim}: ")
    return result.sentence.removeprefix(f"{claim}: ")


@pytest.mark.parametrize("metric", [PEAK_MEMORY, LATENCY], ids=lambda metric: metric.name)
def test_a_technique_that_is_not_selected_or_unsupported_is_not_measured_for_it(
    metric: Any,
) -> None:
    result = reason(less(metric, than=NAIVE), selected=("storybook-sdpa",))
    assert result == "storybook-naive_attention is not part of this run"
    device = FakeDevice(lacks={"accelerator": "needs an accelerator"})
    result = reason(less(metric, than="sequential_cpu_offload"), device=device)
    assert result == "storybook-sequential_cpu_offload is unsupported: needs an accelerator"


def test_a_device_without_a_clock_compares_memory_alone() -> None:
    no_latency = "a simulated call takes no time"
    assert reason(less(LATENCY, than=NAIVE), no_latency=no_latency) == no_latency
    peaks = {"sdpa": {"whole": 1}, NAIVE: {"whole": 2}}
    claim = less(PEAK_MEMORY, than=NAIVE)
    assert compared(claim, peaks=peaks, no_latency=no_latency).outcome == HOLDS


@pytest.mark.parametrize("broken", ["sdpa", NAIVE])
@pytest.mark.parametrize("metric", [PEAK_MEMORY, LATENCY], ids=lambda metric: metric.name)
def test_a_scenario_that_failed_is_the_reason(metric: Any, broken: str) -> None:
    result = reason(less(metric, than=NAIVE), broken=broken, speedups={"sdpa": 1.0})
    assert result == f"storybook-{broken}: ran out of memory"


@pytest.mark.parametrize("without", ["sdpa", NAIVE])
def test_a_technique_without_a_peak_or_a_speed_up_has_none_to_compare(without: str) -> None:
    peaks = {"sdpa": {"whole": 1}, NAIVE: {"whole": 2}, without: {}}
    speedups: dict[str, float | None] = {"sdpa": 1.0, NAIVE: 1.0, without: None}
    for metric in (PEAK_MEMORY, LATENCY):
        result = reason(less(metric, than=NAIVE), peaks=peaks, speedups=speedups)
        assert result == "one of the two has no figure"
