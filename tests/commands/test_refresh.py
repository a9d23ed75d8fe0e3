"""A refresh records what repeats, is right and is possible, and nothing else."""

from __future__ import annotations

import itertools
import json
import math
import re
import shlex
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fixtures.commands import refresh
from fixtures.devices import Device
from fixtures.measuring import observations as observations_module
from fixtures.measuring.control import VERSION
from fixtures.measuring.frozen.program import fingerprint
from fixtures.measuring.observation import Observation
from fixtures.measuring.observations import Observations
from fixtures.measuring.recording import record_device, record_of
from fixtures.measuring.rounds import timing_of
from fixtures.records.baseline_store import BaselineStore
from fixtures.records.baselines import Entry, Sampled
from fixtures.records.counts import Counts
from fixtures.records.host_work import HostWork
from fixtures.records.images import Images, decoded, encoded
from fixtures.records.likeness import FP32
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.records.run import WHOLE, RunRecord
from fixtures.records.timing import Timing
from fixtures.records.units import GIB
from fixtures.scenarios import Scenario, find_scenario
from fixtures.verdicts.image_limits import NONE, Variation
from fixtures.workloads.storybook import PIPELINE_FOLDER
from tests.support import fake_bench
from tests.support.fake_device import FakeDevice
from tests.support.fake_scenarios import IMAGES, observation
from tests.support.running import run_suite
from tests.support.runs import counts, entry, host_work, timing

SCENARIO = find_scenario("storybook", "fp16")
MINE = find_scenario("storybook", "fp16", "my/pipeline")
HERE = {"processor": "Testron 9000", "threads": 1}
ELSEWHERE = {"processor": "Testron 9001", "threads": 1}
RATIOS = (0.5, 0.51, 0.49, 0.505, 0.495, 0.5, 0.498, 0.502, 0.493, 0.507)[: refresh.SAMPLES]
TIMINGS = tuple(timing(ratio) for ratio in RATIOS)


class Frozen:
    """A frozen reference that draws what every observation shows."""

    def draw(self, call: Any, steps: int) -> Images:
        return IMAGES[:1]


@pytest.fixture(autouse=True)
def frozen_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observations_module, "frozen_program", lambda *_: Frozen())


@pytest.fixture(autouse=True)
def nothing_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of harmless variation, whatever is stored."""
    monkeypatch.setattr("fixtures.scenarios.harmless_variation", lambda *_: {})


def gpu(**hardware: Any) -> FakeDevice:
    return FakeDevice(name="cuda", memory_source="allocator", hardware=hardware)


def recorded(
    *seen: Observation,
    timings: Iterable[Timing] = TIMINGS,
    on: FakeDevice | None = None,
    of: Scenario = SCENARIO,
    stored: Entry | None = None,
    replace_samples: bool = False,
) -> Entry:
    """Refresh where the scenario shows these observations in turn, the last one from then on."""
    showing = itertools.chain(seen, itertools.repeat(seen[-1] if seen else observation(of.id)))

    def observer(scenario: Scenario, _: Device) -> Observation:
        return next(showing) if scenario.id == of.id else observation(scenario.id)

    device = on or FakeDevice(hardware=HERE)
    run = RunRecord(commit="0123456789ab")
    record_device(run, device)
    return refresh.record_entry(
        of,
        Observations(device, observer),
        run,
        record_of(run, of),
        reason="why",
        samples=iter(timings),
        stored=stored,
        replace_samples=replace_samples,
    )


def refusal(*seen: Observation, **options: Any) -> ScenarioError:
    with pytest.raises(ScenarioError) as caught:
        recorded(*seen, **options)
    assert str(caught.value).startswith(f"{options.get('of', SCENARIO).id}: ")
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_good_run_gives_an_entry_that_can_be_stored_and_read_again(tmp_path: Path) -> None:
    made = recorded()
    assert made.ratios == pytest.approx(RATIOS)
    assert made.judged_ms == (100.0,) * refresh.SAMPLES
    assert made.component_peak_bytes == {WHOLE: 1000, "vae": 400}
    assert made.counts == counts(mm=10)
    assert made.ssim == 1.0
    assert made.recorded.reason == "why"
    assert made.recorded.hardware == HERE
    assert made.recorded.sampled is None
    store = BaselineStore(tmp_path)
    store.stage("cpu", "storybook", "fp16", made)
    store.commit()
    assert BaselineStore(tmp_path).entry("cpu", "storybook", "fp16") == made


@pytest.mark.parametrize("technique", ["fp16", "fp32"])
def test_an_entry_says_what_was_timed_and_against_which_frozen_reference(technique: str) -> None:
    made = recorded(of=SCENARIO.with_technique(technique))
    assert made.recorded.timing == {"steps": 3, "frozen reference": fingerprint(PIPELINE_FOLDER)}


def test_an_entry_says_of_other_weights_against_which_control_workload_fp32_was_timed() -> None:
    assert recorded(of=MINE).recorded.timing == {"steps": 3}
    assert recorded(of=MINE.reference).recorded.timing == {"steps": 3, "control": VERSION}


def test_what_the_device_does_not_time_is_recorded_without_a_latency() -> None:
    made = recorded(on=FakeDevice(lacks={"fp16 arithmetic": "emulates it"}), timings=())
    assert (made.ratios, made.judged_ms) == ((), ())
    assert made.recorded.timing == {}
    assert made.ssim == 1.0
    assert made.counts


# Images


@pytest.mark.parametrize(
    "of", [SCENARIO, SCENARIO.reference, MINE, MINE.reference], ids=lambda one: one.id
)
def test_what_a_scenario_draws_is_stored_as_it_is(of: Scenario) -> None:
    made = recorded(of=of)
    assert np.abs(decoded(made.images) - IMAGES[:1]).max() <= 0.5 / 255 + 1e-6
    assert made.differences == (), "from what is the file's matter"
    simulated = FakeDevice(lacks={"images": "draws none", "clock": "takes no time"})
    assert not recorded(of=of, on=simulated, timings=()).has_images


def test_a_large_image_is_stored_averaged_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fixtures.records.images.STORED_SIDE_PX", 16)
    (height, width, _) = decoded(recorded().images).shape[1:]
    assert (height, width) == (16, 16)


def test_the_image_of_fp32_is_renewed_where_samples_of_other_hardware_stay() -> None:
    stored = stored_elsewhere(images=tuple(encoded(IMAGES[1:], lossless=True)))
    made = recorded(of=SCENARIO.reference, stored=stored, timings=())
    assert made.ratios == stored.ratios
    assert made.images == tuple(encoded(IMAGES[:1], lossless=True)) != stored.images


def test_an_image_that_is_not_the_frozen_reference_s_is_refused() -> None:
    pale = observation(SCENARIO.reference.id, images=IMAGES[:1] * 0.98)
    refused = refusal(pale, of=SCENARIO.reference)
    assert refused.outcome is Outcome.BROKEN
    assert (
        "the image differs from the frozen reference's: image difference 5.10/255 (limit 0.10/255)"
    ) in str(refused)
    assert str(refused).endswith(": no baseline is recorded from a wrong image")
    rounded = observation(SCENARIO.reference.id, images=IMAGES[:1] * (1 - 1e-6))
    assert recorded(rounded, of=SCENARIO.reference).images


def test_without_the_frozen_reference_fp32_is_refused_and_a_technique_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no kernel")

    monkeypatch.setattr(observations_module, "frozen_program", fail)
    refused = refusal(of=SCENARIO.reference)
    assert refused.outcome is Outcome.BROKEN
    assert "the frozen reference does not run here (no kernel)" in str(refused)
    assert recorded().ssim == 1.0


def test_the_reference_has_no_ssim_with_itself() -> None:
    assert recorded(of=SCENARIO.reference).ssim is None


def test_a_device_without_images_or_a_clock_records_the_rest() -> None:
    simulated = FakeDevice(lacks={"images": "draws none", "clock": "takes no time"})
    made = recorded(on=simulated, timings=())
    assert (made.ssim, made.ratios, made.judged_ms) == (None, (), ())
    assert made.recorded.timing == {}
    assert made.counts


# What is refused


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"counts": counts(mm=11)}, "counts: two measurements differ (aten::mm"),
        (
            {"host_work": host_work(601)},
            "host calls: two measurements differ (host calls (a step): 600 and 601)",
        ),
        ({"counts": Counts()}, "aten::mm: 10 and 0"),
        ({"component_peak_bytes": {WHOLE: 1001, "vae": 400}}, "memory: two measurements differ"),
    ],
)
def test_two_measurements_that_disagree_are_refused(changes: Any, words: str) -> None:
    refused = refusal(observation(), observation(**changes))
    assert refused.outcome is Outcome.INCONCLUSIVE
    assert words in str(refused)


def test_an_allocator_s_peak_may_move_by_the_tolerance_and_no_more() -> None:
    def twice(peak_bytes: int) -> tuple[Observation, Observation]:
        return observation(), observation(component_peak_bytes={WHOLE: peak_bytes, "vae": 400})

    assert recorded(*twice(1010), on=gpu()).component_peak_bytes[WHOLE] == 1000
    assert "memory: two measurements differ" in str(refusal(*twice(1020), on=gpu()))


def test_processes_that_disagree_are_refused_with_the_evidence() -> None:
    ratios = itertools.islice(itertools.cycle((0.4, 0.5, 0.6, 0.7, 0.8)), refresh.SAMPLES)
    refused = refusal(timings=[timing(ratio) for ratio in ratios])
    assert refused.outcome is Outcome.INCONCLUSIVE
    assert re.search(rf"{refresh.SAMPLES} processes differ by 2\d%", str(refused))
    assert "load 0.5" in str(refused)


def test_a_wrong_image_is_refused() -> None:
    refused = refusal(observation(images=IMAGES[:1, ::-1]))
    assert refused.outcome is Outcome.BROKEN
    assert "SSIM with the fp32 image is 0.04" in str(refused)
    assert "(limit 0.9900)" in str(refused)


def test_an_image_that_shows_something_else_is_refused_whatever_its_similarity() -> None:
    def brightness(images: Images) -> list[dict[str, str]]:
        return [{"light": f"{image.max():.3f}"} for image in images]

    workload = replace(SCENARIO.workload, classifier=brightness)
    told = replace(SCENARIO, workload=workload)
    assert recorded(of=told).ssim == 1.0
    refused = refusal(observation(images=IMAGES[:1] * 0.99), of=told)
    assert refused.outcome is Outcome.BROKEN
    assert "the image shows light 0.990 where fp32's shows 1.000" in str(refused)


def test_an_fp32_image_that_is_not_what_the_prompt_asks_for_is_refused() -> None:
    def shown(images: Images) -> list[dict[str, str]]:
        return [{"subject": "cat", "place": "moon"} for _ in images]

    def asking(**asked: str) -> Scenario:
        workload = replace(SCENARIO.workload, classifier=shown, asked=(asked,))
        return replace(SCENARIO.reference, workload=workload)

    assert recorded(of=asking(subject="cat")).images
    refused = refusal(of=asking(subject="astronaut"))
    assert refused.outcome is Outcome.BROKEN
    assert "shows subject cat where the prompt asks for astronaut" in str(refused)


def test_an_image_that_moved_further_from_fp32_s_than_it_may_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever its SSIM is, where its harmless variation was measured."""
    pale = observation(images=IMAGES[:1] * 0.98)
    measured: dict[str, Variation] = {}
    monkeypatch.setattr("fixtures.scenarios.harmless_variation", lambda *_: measured)
    assert recorded(pale).images
    measured[FP32] = Variation(0.01, 0.1, 0.1, 0.1)
    assert recorded(pale).images
    measured[FP32] = NONE
    assert recorded().images
    refused = refusal(pale)
    assert refused.outcome is Outcome.BROKEN
    assert "the image differs from fp32's: " in str(refused)
    assert "accept it with" not in str(refused)


def test_an_image_with_nan_is_refused() -> None:
    refused = refusal(observation(images=IMAGES[:1] * math.nan))
    assert refused.outcome is Outcome.BROKEN


@pytest.mark.parametrize("when", ["first", "second"])
def test_a_technique_that_is_not_in_effect_is_refused(when: str) -> None:
    seen = [observation(inactive="no hook"), observation()]
    refused = refusal(*(seen if when == "first" else reversed(seen)))
    assert refused.outcome is Outcome.NOT_ACTIVE


@pytest.mark.parametrize("when", ["first", "second"])
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"leak": "a call left 2.00 MiB allocated; still alive: 1 x float32"},
            "still alive: 1 x float32; nothing is recorded",
        ),
        ({"left_behind": ("gradients: True -> False",)}, "gradients: True -> False"),
        ({"carried_over": "the same pipeline draws another"}, "draws another; nothing is recorded"),
    ],
    ids=["memory", "a switch", "to the next call"],
)
def test_what_leaves_something_behind_is_refused(
    changes: dict[str, Any], why: str, when: str
) -> None:
    seen = [observation(**changes), observation()]
    refused = refusal(*(seen if when == "first" else reversed(seen)))
    assert refused.outcome is Outcome.BROKEN
    assert why in str(refused)


@pytest.mark.parametrize(
    "changes",
    [
        {"component_peak_bytes": {WHOLE: 0}},
        {"component_peak_bytes": {WHOLE: 1000, "vae": -1}},
        {"component_peak_bytes": {WHOLE: math.inf}},
        {"counts": counts(mm=-1)},
    ],
)
def test_an_impossible_figure_is_refused(changes: Any) -> None:
    refused = refusal(observation(**changes))
    assert refused.outcome is Outcome.BROKEN
    assert "impossible, nothing is recorded" in str(refused)


@pytest.mark.parametrize(
    ("lost", "what"),
    [
        ({"component_peak_bytes": {}}, "memory"),
        ({"counts": Counts()}, "counts"),
        ({"host_work": HostWork()}, "host calls"),
    ],
)
def test_a_measurement_that_lost_what_the_entry_has_is_refused(
    lost: dict[str, Any], what: str
) -> None:
    before = replace(recorded(), host_work=host_work(10))
    seen = {"host_work": host_work(10), **lost}
    refused = refusal(observation(**seen), stored=before)
    assert refused.outcome is Outcome.BROKEN
    assert f"{what}: nothing was measured, but the stored entry has figures" in str(refused)
    assert recorded(observation(**seen)), "a first record needs no figure of before"
    assert recorded(observation(host_work=host_work(10)), stored=before)


@pytest.mark.parametrize("judged_ms", [0.0, -1.0, math.nan, math.inf])
def test_an_impossible_latency_is_refused(judged_ms: float) -> None:
    # A group of rounds refuses such a time itself.
    impossible = replace(timing(0.5))
    object.__setattr__(impossible.groups[0], "candidate_s", (judged_ms / 1000,) * 3)
    assert "impossible" in str(refusal(timings=[*TIMINGS[:-1], impossible]))


def test_more_memory_than_the_device_has_is_refused_and_all_of_it_is_not() -> None:
    on = FakeDevice(memory_bytes=2 * GIB)
    assert recorded(observation(component_peak_bytes={WHOLE: 2 * GIB}), on=on)
    refused = refusal(observation(component_peak_bytes={WHOLE: 2 * GIB + 1}), on=on)
    assert "is more than the" in str(refused)


def test_a_sample_that_fails_refuses_the_whole() -> None:
    def taken() -> Iterable[Timing]:
        yield timing()
        raise ScenarioError(SCENARIO.id, Outcome.BROKEN, "its process ended with code 1")

    assert "ended with code 1" in str(refusal(timings=taken()))


# Samples of other hardware


def stored_elsewhere(**changes: Any) -> Entry:
    """An entry whose latency was sampled on other hardware than this."""
    made = entry(**changes)
    recorded = replace(made.recorded, hardware=ELSEWHERE, timing=timing_of(SCENARIO, FakeDevice()))
    return replace(made, recorded=recorded)


def test_samples_of_other_hardware_stay_and_everything_else_is_renewed() -> None:
    stored = stored_elsewhere()
    made = recorded(stored=stored, timings=())
    assert (made.ratios, made.judged_ms) == (stored.ratios, stored.judged_ms)
    assert made.counts == counts(mm=10) != stored.counts
    assert made.component_peak_bytes == {WHOLE: 1000, "vae": 400}
    assert made.ssim == 1.0
    assert made.recorded.reason == "why"
    assert made.recorded.hardware == ELSEWHERE
    assert made.recorded.timing == stored.recorded.timing
    assert refresh.keeps_samples(stored, SCENARIO, FakeDevice(hardware=HERE))
    note = refresh.samples_note(SCENARIO, stored)
    assert "as they were taken on Testron 9001, 1 thread" in note
    assert note.endswith("refresh with --perf-replace-samples")


def test_the_entry_says_when_and_with_what_its_samples_were_taken() -> None:
    stored = stored_elsewhere()
    sampled = Sampled(stored.recorded.date, stored.recorded.commit, dict(stored.recorded.software))
    once = recorded(stored=stored, timings=())
    assert once.recorded.sampled == sampled
    assert once.recorded.date != sampled.date
    twice = recorded(stored=once, timings=())
    assert twice.recorded.sampled == sampled, "not when they were kept for the first time"


def test_samples_of_other_hardware_are_replaced_where_that_is_asked_for() -> None:
    made = recorded(stored=stored_elsewhere(), replace_samples=True)
    assert made.ratios == pytest.approx(RATIOS)
    assert made.recorded.hardware == HERE
    assert made.recorded.sampled is None


@pytest.mark.parametrize(
    "stored",
    [
        None,
        entry(ratios=(), judged_ms=()),
        replace(stored_elsewhere(), ratios=(), judged_ms=()),
        replace(
            stored_elsewhere(), recorded=replace(stored_elsewhere().recorded, timing={"steps": 1})
        ),
        replace(stored_elsewhere(), recorded=replace(stored_elsewhere().recorded, hardware=HERE)),
    ],
    ids=["no entry", "no samples", "none elsewhere", "of another call", "of this hardware"],
)
def test_without_usable_samples_of_other_hardware_new_ones_are_taken(stored: Entry | None) -> None:
    assert not refresh.keeps_samples(stored, SCENARIO, FakeDevice(hardware=HERE))
    made = recorded(stored=stored)
    assert made.ratios == pytest.approx(RATIOS)
    assert made.recorded.hardware == HERE


# What is said


def test_the_differences_say_old_and_new_of_every_figure() -> None:
    old = entry()
    new = entry(
        judged_ms=(50.0,), ratios=(0.5,), counts=counts(mm=1), ssim=None, host_work=host_work(610)
    )
    assert refresh.differences(SCENARIO, old, new) == (
        f"{SCENARIO.id}: latency 100 ms -> 50 ms, ratio x1.000 -> x0.500, peak 512.00 MiB, "
        "SSIM 0.9950 -> none, 3 counts changed, host calls a step 600 -> 610"
    )
    assert "1 count changed" in refresh.differences(
        SCENARIO, old, replace(old, counts=replace(old.counts, totals={"operations": 1}))
    )
    assert refresh.differences(SCENARIO, None, new) == f"{SCENARIO.id}: new"


# As a whole, on a bench that measures nothing

BF16 = ("-k", "[storybook-bf16]", "--perf-update-baselines", "--perf-reason")


def refreshed(folder: Path, *options: str, reason: str, **environment: str) -> tuple[Entry, str]:
    """The stored entry after a refresh, and what the refresh said."""
    result = run_suite(
        *(*fake_bench.OPTIONS, *BF16, reason, "--perf-baselines", str(folder), *options),
        **environment,
    )
    assert result.returncode == 0, result.stdout
    made = BaselineStore(folder).entry(fake_bench.KEY, "storybook", "bf16")
    assert made is not None
    assert made.recorded.reason == reason
    return made, result.stdout


def test_the_command_keeps_the_samples_of_another_machine_and_says_how_to_replace_them(
    tmp_path: Path,
) -> None:
    first, said = refreshed(tmp_path, reason="first")
    assert "storybook-bf16: new" in said
    assert len(first.ratios) == refresh.SAMPLES
    other = {"FAKE_HARDWARE": "Testron 9001", "FAKE_SLOW": "storybook-bf16"}
    kept, said = refreshed(tmp_path, reason="one more", FAKE_MORE="storybook-bf16", **other)
    assert kept.ratios == first.ratios
    assert kept.counts.operations["aten::mm"] == first.counts.operations["aten::mm"] + 1
    assert "2 counts changed" in said
    assert "taken on Testron 9000; to replace them" in " ".join(said.split())
    replaced, said = refreshed(tmp_path, "--perf-replace-samples", reason="mine", **other)
    assert replaced.ratios[0] == pytest.approx(1.5 * first.ratios[0], rel=1e-4)
    assert replaced.recorded.hardware == {"accelerator": "Testron 9001"}
    assert "to replace them" not in said


def test_the_command_that_a_failure_prints_accepts_what_failed_and_nothing_else(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "my baselines"
    path = folder / fake_bench.KEY / "storybook.json"
    both = ("-k", "[storybook-bf16] or [storybook-sdpa]")
    refreshed(folder, *both, reason="first")
    before = json.loads(path.read_text(encoding="utf-8"))["scenarios"]
    judged = (*fake_bench.OPTIONS, "--perf-baselines", str(folder), *both)
    faulty = {"FAKE_MORE": "storybook-bf16"}
    failed = run_suite(*judged, **faulty)
    assert failed.returncode == 1
    command = re.search(r"accept it with: (.* --perf-reason \"WHY\")", failed.stdout)
    assert command is not None
    options = shlex.split(command[1])[shlex.split(command[1]).index("--perf-device") :]
    accepted = run_suite(*fake_bench.PLUGIN, "--perf-update-baselines", *options, **faulty)
    assert accepted.returncode == 0, accepted.stdout
    assert run_suite(*judged, **faulty).returncode == 0
    after = json.loads(path.read_text(encoding="utf-8"))["scenarios"]
    assert after["sdpa"] == before["sdpa"]
    assert after["bf16"]["recorded"]["reason"] == "WHY"


def test_a_scenario_that_is_refused_writes_no_other_either(tmp_path: Path) -> None:
    folder = tmp_path / "baselines"
    result = run_suite(
        *(*fake_bench.OPTIONS, *BF16, "why", "--perf-baselines", str(folder)),
        *("-k", "[storybook-bf16] or [storybook-sdpa]"),
        FAKE_LEAK="storybook-sdpa",
    )
    assert result.returncode == 1
    assert "a call left 2.00 MiB allocated; nothing is recorded" in result.stdout
    assert "No baseline was written" in result.stdout
    assert not folder.exists()
