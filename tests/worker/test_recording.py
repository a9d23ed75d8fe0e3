"""What becomes of measurements: a scenario's record, and the entry of a baseline."""

from __future__ import annotations

import datetime
import math

import pytest

from fixtures.catalogue.matrix import Scenario
from fixtures.metrics.latency_verdicts import judge_time
from fixtures.metrics.statistics import shift_of
from fixtures.records.baselines import Baseline
from fixtures.records.images import encoded
from fixtures.records.run import WHOLE
from fixtures.records.timing import Timing
from fixtures.worker.recording import (
    entry_of,
    new_run,
    record_device,
    record_observation,
    record_of,
    record_timings,
)
from fixtures.worker.rounds import Plan, paired_rounds
from tests.metrics.cases import case
from tests.support.counting import counts, host_calls
from tests.support.fake_device import FakeDevice
from tests.support.fake_scenarios import IMAGES, fake_scenario, observation
from tests.support.fake_timed import FakeTimed
from tests.support.runs import timing
from tests.support.scenarios import find_scenario

SCENARIO = find_scenario("storybook", "fp16")


def test_a_run_says_when_it_began_in_utc_of_which_commit_it_is_and_on_what_with_its_caveat() -> (
    None
):
    run, device = new_run(), FakeDevice(caveat="figures are computed, not measured")
    began = datetime.datetime.fromisoformat(run.recorded_at)
    assert began.utcoffset() == datetime.timedelta(0)
    assert run.commit
    for _ in range(2):
        record_device(run, device, {"diffusers": "0.42.1"})
    assert run.device_key == "fake"
    assert run.hardware == device.hardware
    assert run.software == {"diffusers": "0.42.1"}
    assert run.notes == ["figures are computed, not measured"]


def test_a_scenario_has_one_record_in_a_run() -> None:
    run = new_run()
    record = record_of(run, SCENARIO)
    assert record_of(run, SCENARIO) is record is run.scenarios["storybook-fp16"]
    assert (record.workload, record.technique, record.family) == ("storybook", "fp16", "precision")
    assert record.documented_speedup == SCENARIO.technique.documented_speedup
    assert record.weights == "embedded"
    own = find_scenario("storybook", "fp16", "my/pipeline")
    assert record_of(new_run(), own).weights == "my/pipeline"


def test_an_observation_is_recorded_with_the_reference_s_peak() -> None:
    record = record_of(new_run(), SCENARIO)
    simulated = observation(bound_ms=250.0)
    record_observation(record, simulated, None)
    assert record.component_peak_bytes == {WHOLE: 1000, "vae": 400}
    assert record.counts == counts(mm=10).beside(host_calls())
    assert record.bound_ms == 250.0
    assert record.reference_peak_bytes is None
    record_observation(record, observation(), observation(component_peak_bytes={WHOLE: 4000}))
    assert record.reference_peak_bytes == 4000
    assert record.bound_ms is None


def test_a_baseline_stores_the_estimate_that_a_run_of_the_same_rounds_is_judged_by() -> None:
    """On a watched accelerator, with rounds that are left out and others that are skewed."""

    def seconds(number: int) -> float:
        return (0.1, 9.9, 0.104, 0.1, 0.13, 0.101, 0.102, 9.9)[number - 1]

    reference, candidate = FakeTimed(hot=[9]), FakeTimed(seconds, hot=[2])
    taken = paired_rounds(SCENARIO, reference, candidate, Plan(4, 2), shares_core=False)
    assert len(taken.groups) == 2
    record = record_of(new_run(), SCENARIO)
    record_timings(record, SCENARIO, [taken] * 2)
    stored = entry_of(new_run(), record, "why", {})
    run = case(entry=stored, hardware={}, steady_clock=True)
    verdict = judge_time(run, [taken] * 2)
    assert verdict.measured == pytest.approx(verdict.baseline, rel=1e-5)
    judged = shift_of(
        [taken.latency_sample], [[math.log(ms) for ms in stored.latency[0].judged_ms]]
    )
    assert judged.shift == pytest.approx(0.0, abs=1e-5)


FAKE = fake_scenario(print)


@pytest.mark.parametrize(
    ("timed", "fp32", "against", "speedup"),
    [
        (FAKE, [], "fp32", 2.0),
        (SCENARIO, [timing(1.5)] * 2, "the frozen reference", 3.0),
        (SCENARIO, [], "the frozen reference", None),
        (SCENARIO.reference, [timing()], "the frozen reference", None),
        (fake_scenario(print, "fp32"), [timing()], "the control workload", None),
    ],
)
def test_timings_are_recorded_with_the_median_and_the_speed_up_where_fp32_was_timed(
    timed: Scenario, fp32: list[Timing], against: str, speedup: float | None
) -> None:
    timings = [timing(0.5, judged_ms=ms) for ms in (90.0, 100.0, 200.0)]
    record = record_of(new_run(), timed)
    record_timings(record, FAKE, timings)
    record_timings(record, timed, timings, fp32)
    assert record.timings == timings
    assert record.wall_ms == pytest.approx(100.0)
    assert record.timed_against == against
    assert record.ratios == pytest.approx([0.5] * 3)
    if speedup is None:
        assert record.speedup is None
    else:
        assert record.speedup is not None
        assert record.speedup.estimate == pytest.approx(speedup)
        assert record.speedup.low < record.speedup.estimate < record.speedup.high


# Entries


def test_an_entry_rounds_what_noise_makes_meaningless_and_can_be_stored() -> None:
    run = new_run()
    record_device(run, FakeDevice(), {})
    record = record_of(run, SCENARIO)
    record_observation(record, observation(SCENARIO.id), None)
    record.images = encoded(IMAGES)
    untimed = entry_of(run, record, "why", {"steps": 3})
    assert untimed.latency == ()
    record.ssim = 0.123456789
    record_timings(record, SCENARIO, [timing(1 / 3, judged_ms=100 / 3)])
    entry = entry_of(run, record, "why", {"steps": 3})
    assert entry.ssim == 0.123457
    (session,) = entry.latency
    assert session.ratios == (0.33333,)
    assert session.judged_ms == (33.333,)
    assert session.hardware == {"processor": "Testron 9000"}
    assert session.timing == {"steps": 3}
    assert (session.software, session.commit) == (run.software, run.commit)
    assert entry.component_peak_bytes == record.component_peak_bytes
    assert entry.counts == record.counts
    assert entry.recorded.reason == "why"
    assert entry.recorded.software == run.software
    assert entry.recorded.commit == run.commit
    assert entry.images == ()
    assert entry_of(run, record, "why", {}, record.images).images == tuple(record.images)
    assert Baseline("storybook", "fake", {"fp16": entry}).text()
