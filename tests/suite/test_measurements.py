"""The records of a run: each figure is measured once, whatever is asked for first."""

from __future__ import annotations

import itertools
import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import numpy as np
import pytest

from fixtures.catalogue.matrix import Scenario
from fixtures.catalogue.techniques.technique import less
from fixtures.devices import Device
from fixtures.metrics.case import Case
from fixtures.metrics.latency_verdicts import LATENCY
from fixtures.metrics.peak_memory import PEAK_MEMORY
from fixtures.records.images import FP32, FROZEN, STORED, Images
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.records.run import ScenarioRecord
from fixtures.records.timing import Timing
from fixtures.suite import measurements as measurements_module
from fixtures.suite.cases import Cases
from fixtures.suite.measurements import Claims, Measurements
from fixtures.worker import timed as timed_module
from fixtures.worker.observation import Observation
from fixtures.worker.recording import new_run, timing_of
from fixtures.worker.rounds import SHORT, Plan
from fixtures.worker.sampling import SampleBudget
from tests.support.fake_device import FakeDevice
from tests.support.fake_scenarios import IMAGES, observation, observations_on
from tests.support.runs import HARDWARE, entry, latency, timing
from tests.support.scenarios import find_scenario

SCENARIO = find_scenario("storybook-256", "vae_tiling")
REFERENCE = SCENARIO.reference


@dataclass
class Bench:
    """Measurements that nobody takes, and a log of who was observed and who was timed how.

    `shown` is what an observation of each scenario shows; an error is raised. `ratios` are what
    the first and the further timings see, one after the other.
    """

    shown: dict[str, Any] = field(default_factory=dict)
    ratios: Sequence[float | BaseException] = (1.0,)
    stored: bool = True
    keep_images: bool = False
    stored_images: dict[str, Images | Exception] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._timings = itertools.chain(self.ratios, itertools.repeat(self.ratios[-1]))
        self.plans: list[Plan] = []
        observations = observations_on(FakeDevice(), self._observe)
        cast(Any, observations.worker).sample = self._sample
        self.measurements = Measurements(
            observations,
            new_run(),
            cast(Cases, SimpleNamespace(case=self._case, images=self._stored_images)),
            SampleBudget(1e9),
            keep_images=self.keep_images,
        )

    def _observe(self, scenario: Scenario, device: Device) -> Observation:
        self.log.append(f"observe {scenario.technique.id}")
        shown = self.shown.get(scenario.technique.id, {})
        if isinstance(shown, ScenarioError):
            raise shown
        return observation(scenario.id, **{"images": IMAGES[:1], **shown})

    def _case(self, scenario: Scenario) -> Case:
        timed = timing_of(scenario, FakeDevice())
        reference_ms = (98.0, 99.0, 100.0, 101.0, 102.0)
        session = latency((1.0,) * 5, judged_ms=reference_ms, timing=timed)
        stored = entry(latency=(session,)) if self.stored else None
        return Case(scenario.id, stored, {}, hardware=HARDWARE, timing=timed)

    def _stored_images(self, scenario: Scenario) -> Images | None:
        images = self.stored_images.get(scenario.technique.id)
        if isinstance(images, Exception):
            raise images
        return images

    def _sample(self, scenario: Scenario, plan: Plan) -> Timing:
        self.log.append(f"sample {scenario.technique.id}")
        self.plans.append(plan)
        ratio = next(self._timings)
        if isinstance(ratio, BaseException):
            raise ratio
        return timing(ratio, judged_ms=100.0 * ratio)

    @property
    def claims(self) -> Claims:
        return Claims(self.measurements, {SCENARIO.id}, None)


@pytest.fixture(autouse=True)
def _samples_of_the_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    def take(worker: Any, device: object, scenario: Scenario, plan: Plan) -> Timing:
        return cast(Timing, worker.sample(scenario, plan))

    monkeypatch.setattr(measurements_module, "take_sample", take)


# Each figure is measured once


def test_a_latency_is_sampled_until_it_is_decided_and_then_kept() -> None:
    bench = Bench(ratios=(1.08, 1.0, 1.0, 1.0, 1.0))
    (record, verdicts), again = [bench.measurements.timed(SCENARIO) for _ in range(2)]
    assert again == (record, verdicts)
    _, *taken, observed, for_the_speedup = bench.log
    assert taken == ["sample vae_tiling"] * len(taken)
    assert len(taken) == len(record.timings) > 1
    assert (observed, for_the_speedup) == ("observe fp32", "sample fp32")
    assert [verdict.outcome for verdict in verdicts] == [Outcome.PASS]
    assert record.wall_ms == statistics.median(timing_.wall_ms for timing_ in record.timings)
    assert record.speedup is not None


def test_a_sample_is_half_as_long_where_a_further_one_is_forked() -> None:
    bench = Bench()
    settled = partial(bench.log.append, "settle")
    with mock.patch.object(bench.measurements.observations, "settle", settled):
        next(bench.measurements.samples(SCENARIO))
    assert bench.log == ["observe vae_tiling", "settle", "sample vae_tiling"]
    bench.measurements.observations.device = FakeDevice(shares_core=True)
    next(bench.measurements.samples(SCENARIO))
    whole, forked = bench.plans
    assert forked == Plan(SHORT) != whole


# The speed-up over fp32, where both are timed against the frozen reference


def test_the_speed_up_is_over_fp32_s_own_latency_where_that_was_timed() -> None:
    bench = Bench(ratios=(1.5, 0.5), stored=False)
    bench.measurements.timed(REFERENCE)
    record, _ = bench.measurements.timed(SCENARIO)
    assert bench.log.count("sample fp32") == 1
    assert record.timed_against == "the frozen reference"
    assert record.speedup is not None
    assert record.speedup.estimate == pytest.approx(3.0)


@pytest.mark.parametrize("failing", ["", "observed", "timed"])
def test_fp32_is_tried_once_for_all_speed_ups_and_without_it_there_is_none(failing: str) -> None:
    broken = ScenarioError(REFERENCE.id, Outcome.BROKEN, "ran out of memory")
    bench = Bench(
        shown={"fp32": broken} if failing == "observed" else {},
        ratios=(1.0, broken, 1.0) if failing == "timed" else (1.0,),
        stored=False,
    )
    for scenario in (SCENARIO, SCENARIO.with_technique("vae_slicing")):
        record, _ = bench.measurements.timed(scenario)
        assert record.timings
        assert (record.speedup is None) == bool(failing)
    assert bench.log.count("observe fp32") == 1
    assert bench.log.count("sample fp32") == (failing != "observed")


# The fp32 image


@pytest.mark.parametrize(
    ("drawn", "outcome", "words"),
    [
        (RuntimeError("no kernel"), Outcome.NO_BASELINE, "does not run here \\(no kernel\\)"),
        (MemoryError("huge"), Outcome.BROKEN, "ran out of memory on fake"),
        (IMAGES[:1] * np.nan, Outcome.BROKEN, "NaN"),
        (IMAGES, Outcome.BROKEN, "shape"),
    ],
    ids=["fails", "memory", "NaN", "another shape"],
)
def test_a_frozen_reference_that_draws_nothing_to_compare_with_is_a_failure_with_the_reason(
    drawn: Images | Exception, outcome: Outcome, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, program = Bench(), mock.Mock()
    program.draw.side_effect = [drawn]
    monkeypatch.setattr(timed_module, "frozen_program", lambda workload, device: program)
    for _ in range(2):
        record = bench.measurements.drawn(REFERENCE)
    assert program.draw.call_count == 1
    said, reason = record.not_compared[FROZEN]
    assert said is outcome
    assert re.search(words, reason)
    assert record.ssim == 1.0, "other figures need it not"


# What failed fails again, with its reason


@pytest.mark.parametrize("ratios", [(None,), (1.08, None)], ids=["first", "further"])
def test_a_latency_that_failed_is_not_sampled_again_and_an_interrupt_is_no_failure(
    ratios: Sequence[float | None],
) -> None:
    hot = ScenarioError(SCENARIO.id, Outcome.INCONCLUSIVE, "9 of 24 rounds were disturbed")
    bench = Bench(ratios=[KeyboardInterrupt(), *(ratio or hot for ratio in ratios)])
    with pytest.raises(KeyboardInterrupt):
        bench.measurements.timed(SCENARIO)
    errors = []
    for _ in range(2):
        with pytest.raises(ScenarioError) as caught:
            bench.measurements.timed(SCENARIO)
        errors.append((caught.value.outcome, str(caught.value)))
    assert bench.log.count("sample vae_tiling") == 1 + len(ratios)
    assert errors == [(Outcome.INCONCLUSIVE, str(hot))] * 2
    assert bench.measurements.record(SCENARIO).timings == []


def test_a_reference_that_failed_leaves_the_figures_that_do_not_need_it() -> None:
    broken = ScenarioError(REFERENCE.id, Outcome.BROKEN, "ran out of memory")
    bench = Bench(shown={"fp32": broken})
    record = bench.measurements.observed(SCENARIO)
    assert (record.peak_bytes, record.reference_peak_bytes) == (1000, None)
    with pytest.raises(ScenarioError, match="storybook-256-fp32: ran out of memory"):
        bench.measurements.drawn(SCENARIO)


# The order does not matter


def ask_in(order: Sequence[str]) -> tuple[ScenarioRecord, list[str]]:
    """The record and what the claims say, where this is asked for in this order."""
    bench = Bench(ratios=(0.8,), keep_images=True, stored_images={"vae_tiling": IMAGES[1:]})
    said: list[str] = []

    def compare() -> None:
        for claim in (less(PEAK_MEMORY), less(LATENCY)):
            said.append(bench.claims.compared(claim, SCENARIO).sentence)

    asks: dict[str, Callable[[], object]] = {
        "claims": compare,
        "latency": lambda: bench.measurements.timed(SCENARIO),
        "peaks": lambda: bench.measurements.observed(SCENARIO),
        "images": lambda: bench.measurements.drawn(SCENARIO),
    }
    assert bench.log == []
    for what in (*order, *order):
        asks[what]()
    assert bench.log.count("observe vae_tiling") == bench.log.count("observe fp32") == 1
    assert len(bench.log) == 2 + len(bench.measurements.record(SCENARIO).timings) + 1
    assert bench.measurements.run.scenarios.keys() == {SCENARIO.id}
    return bench.measurements.record(SCENARIO), said


def test_the_record_is_the_same_whatever_is_asked_for_first() -> None:
    kinds = ("claims", "latency", "peaks", "images")
    record, said = ask_in(kinds)
    assert record.timings
    assert record.images
    assert record.likeness.keys() == {FP32, STORED}
    assert record.stored_images
    assert record.ssim == 1.0
    assert record.component_peak_bytes
    assert record.counts
    assert record.reference_peak_bytes
    assert len(said) == 2 * 2
    # Each comes first once, and after each of the others.
    for order in (kinds[::-1], kinds[1:] + kinds[:1], kinds[2:] + kinds[:2]):
        assert ask_in(order) == (record, said), order


# Images


def test_images_are_kept_for_a_report_alone() -> None:
    unseen = Bench(stored_images={"vae_tiling": IMAGES[1:]}).measurements.drawn(SCENARIO)
    assert unseen.images == unseen.stored_images == []
    assert unseen.flip_maps == {}
