"""A refresh records what repeats, is right and is possible, and nothing else."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fixtures.catalogue.matrix import Scenario
from fixtures.catalogue.workloads.storybook import PIPELINE_FOLDER
from fixtures.commands import refresh
from fixtures.devices import Device
from fixtures.devices.host import software_versions
from fixtures.metrics.case import Case
from fixtures.metrics.image_limits import NONE, Variation
from fixtures.records.baseline_store import BaselineStore
from fixtures.records.baselines import SESSIONS, Entry, LatencySession
from fixtures.records.images import FP32, Images, decoded
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.records.record import LEAK
from fixtures.records.run import WHOLE, RunRecord
from fixtures.records.timing import Timing
from fixtures.records.units import GIB
from fixtures.worker import timed as timed_module
from fixtures.worker.frozen import fingerprint
from fixtures.worker.observation import Observation
from fixtures.worker.recording import CONTROL_VERSION, record_device, record_of, timing_of
from tests.support import fake_bench
from tests.support.counting import counts, host_calls
from tests.support.fake_device import FakeDevice
from tests.support.fake_scenarios import IMAGES, observation, observations_on
from tests.support.running import run_suite
from tests.support.runs import entry, latency, timing
from tests.support.scenarios import find_scenario

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
    monkeypatch.setattr(timed_module, "frozen_program", lambda *_: Frozen())


@pytest.fixture(autouse=True)
def nothing_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of harmless variation, whatever is stored."""
    monkeypatch.setattr("fixtures.catalogue.matrix.harmless_variation", lambda *_: {})


def gpu(**hardware: Any) -> FakeDevice:
    return FakeDevice(name="cuda", memory_source="allocator", hardware=hardware)


def recorded(
    *seen: Observation,
    timings: Iterable[Timing] = TIMINGS,
    on: FakeDevice | None = None,
    of: Scenario = SCENARIO,
    stored: Entry | None = None,
) -> Entry:
    """Refresh where the scenario shows these observations in turn, the last one from then on."""
    showing = itertools.chain(seen, itertools.repeat(seen[-1] if seen else observation(of.id)))

    def observer(scenario: Scenario, _: Device) -> Observation:
        return next(showing) if scenario.id == of.id else observation(scenario.id)

    device = on or FakeDevice(hardware=HERE)
    run = RunRecord(commit="0123456789ab")
    record_device(run, device, software_versions())
    return refresh.record_entry(
        of,
        observations_on(device, observer),
        run,
        record_of(run, of),
        reason="why",
        samples=iter(timings),
        case=Case(
            of.id,
            stored,
            {},
            hardware=device.hardware,
            timing=timing_of(of, device),
            memory_source=device.memory_source,
            min_ssim=of.technique.min_ssim_on(of.workload.name),
            harmless=of.harmless(device.name),
        ),
    )


def refusal(*seen: Observation, **options: Any) -> ScenarioError:
    with pytest.raises(ScenarioError) as caught:
        recorded(*seen, **options)
    assert str(caught.value).startswith(f"{options.get('of', SCENARIO).id}: ")
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_good_run_gives_an_entry_of_all_that_was_measured() -> None:
    made = recorded()
    (session,) = made.latency
    assert session.ratios == pytest.approx(RATIOS)
    assert session.judged_ms == (100.0,) * refresh.SAMPLES
    assert session.hardware == HERE
    assert made.component_peak_bytes == {WHOLE: 1000, "vae": 400}
    assert made.counts == counts(mm=10).beside(host_calls())
    assert made.ssim == 1.0
    assert np.abs(decoded(made.images) - IMAGES[:1]).max() <= 0.5 / 255 + 1e-6
    assert made.recorded.reason == "why"


@pytest.mark.parametrize(
    ("of", "reference"),
    [
        (SCENARIO, {"frozen reference": fingerprint(PIPELINE_FOLDER)}),
        (SCENARIO.reference, {"frozen reference": fingerprint(PIPELINE_FOLDER)}),
        (MINE, {}),
        (MINE.reference, {"control": CONTROL_VERSION}),
    ],
)
def test_an_entry_says_what_was_timed_and_against_what(
    of: Scenario, reference: dict[str, Any]
) -> None:
    assert recorded(of=of).latency[0].timing == {"steps": 3, **reference}


# Images


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

    monkeypatch.setattr(timed_module, "frozen_program", fail)
    refused = refusal(of=SCENARIO.reference)
    assert refused.outcome is Outcome.BROKEN
    assert "the frozen reference does not run here (no kernel)" in str(refused)
    assert recorded().ssim == 1.0


def test_a_device_without_images_or_a_clock_records_the_rest() -> None:
    simulated = FakeDevice(lacks={"images": "draws none", "clock": "takes no time"})
    made = recorded(on=simulated, timings=())
    assert (made.ssim, made.latency, made.images) == (None, (), ())
    assert made.counts
    emulated = recorded(on=FakeDevice(lacks={"fp16 arithmetic": "emulates it"}), timings=())
    assert (emulated.ssim, emulated.latency) == (1.0, ())
    assert recorded(of=SCENARIO.reference).ssim is None, "with itself"


# What is refused


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"counts": counts(mm=11)}, "counts: two measurements differ (operations ( aten::mm)"),
        (
            {"counts": counts(mm=10).beside(host_calls(601))},
            "host calls: two measurements differ (host calls (diffusers/model.py Model.forward)",
        ),
        ({"counts": host_calls()}, "operations ( aten::mm): 10 and 0"),
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


def test_an_image_that_moved_further_from_fp32_s_than_it_may_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever its SSIM is, where its harmless variation was measured; and always by its SSIM."""
    wrong = refusal(observation(images=IMAGES[:1, ::-1]))
    assert wrong.outcome is Outcome.BROKEN
    assert "SSIM with the fp32 image is 0.04" in str(wrong)
    assert "(limit 0.9900)" in str(wrong)
    pale = observation(images=IMAGES[:1] * 0.98)
    measured: dict[str, Variation] = {}
    monkeypatch.setattr("fixtures.catalogue.matrix.harmless_variation", lambda *_: measured)
    assert recorded(pale).images
    measured[FP32] = Variation(0.01, 0.1, 0.1, 0.1)
    assert recorded(pale).images
    measured[FP32] = NONE
    assert recorded().images
    refused = refusal(pale)
    assert refused.outcome is Outcome.BROKEN
    assert "the image differs from fp32's: " in str(refused)
    assert "accept it with" not in str(refused)


@pytest.mark.parametrize("when", ["first", "second"])
@pytest.mark.parametrize(
    ("changes", "outcome", "why"),
    [
        ({"inactive": "no hook"}, Outcome.NOT_ACTIVE, "no hook"),
        (
            {"faults": {LEAK: "still alive: x"}},
            Outcome.BROKEN,
            "still alive: x; nothing is recorded",
        ),
    ],
    ids=["not in effect", "memory"],
)
def test_what_is_not_in_effect_or_leaves_something_behind_is_refused(
    changes: dict[str, Any], outcome: Outcome, why: str, when: str
) -> None:
    seen = [observation(**changes), observation()]
    refused = refusal(*(seen if when == "first" else reversed(seen)))
    assert refused.outcome is outcome
    assert why in str(refused)


@pytest.mark.parametrize(
    "changes",
    [
        {"component_peak_bytes": {WHOLE: 0}},
        {"component_peak_bytes": {WHOLE: 2 * GIB + 1}},
        {"component_peak_bytes": {WHOLE: 1000, "vae": -1}},
    ],
)
def test_an_impossible_figure_is_refused(changes: Any) -> None:
    refused = refusal(observation(**changes), on=FakeDevice(memory_bytes=2 * GIB))
    assert refused.outcome is Outcome.BROKEN
    assert "is impossible with the" in str(refused)


@pytest.mark.parametrize(
    ("lost", "what"),
    [
        ({"component_peak_bytes": {}}, "memory"),
        ({"counts": host_calls()}, "counts"),
        ({"counts": counts(mm=10)}, "host calls"),
    ],
)
def test_a_measurement_that_lost_what_the_entry_has_is_refused(
    lost: dict[str, Any], what: str
) -> None:
    before = recorded()
    refused = refusal(observation(**lost), stored=before)
    assert refused.outcome is Outcome.BROKEN
    assert f"{what}: nothing was measured, but the stored entry has figures" in str(refused)
    assert recorded(observation(**lost)), "a first record needs no figure of before"
    assert recorded(observation(), stored=before)


# Sessions


def session(hardware: Mapping[str, Any] = HERE, by: float = 1.0, **changes: Any) -> LatencySession:
    """A stored session of the call that `recorded` times, slower by a factor."""
    timing = timing_of(SCENARIO, FakeDevice())
    ratios = tuple(by * ratio for ratio in RATIOS)
    times = (100.0 * by,) * len(RATIOS)
    fields = {"hardware": hardware, "timing": timing, "judged_ms": times, **changes}
    return latency(ratios, **fields)


def stored_on(*kinds: Mapping[str, Any], **changes: Any) -> Entry:
    """An entry of the work that `recorded` counts, with a session of each of these kinds."""
    sessions = tuple(session(kind, date=str(day)) for day, kind in enumerate(kinds))
    return entry(**{"latency": sessions, "counts": counts(mm=10).beside(host_calls()), **changes})


@pytest.mark.parametrize(
    ("stored", "kept"),
    [
        (stored_on(ELSEWHERE, HERE), [0, 1]),
        # The oldest of a kind makes room.
        (stored_on(*[HERE, ELSEWHERE] * SESSIONS), [*range(1, 2 * SESSIONS)]),
        # Of a machine of which nothing is known they are of another kind.
        (stored_on(*[{}] * SESSIONS), [*range(SESSIONS)]),
        # Of other work or of another call none of any kind stays.
        (stored_on(ELSEWHERE, HERE, counts=counts(mm=11)), []),
        (stored_on(latency=[session(kind, timing={"steps": 1}) for kind in (ELSEWHERE, HERE)]), []),
        # Samples that are certainly not like those of their kind supersede them.
        *(
            (stored_on(latency=[session(ELSEWHERE), session(HERE, by), session(HERE, by)]), [0])
            for by in (0.1, 0.7, 1.5)
        ),
    ],
)
def test_a_session_is_added_to_those_that_are_like_it_and_of_other_kinds(
    stored: Entry, kept: list[int]
) -> None:
    *others, mine = recorded(stored=stored).latency
    assert sorted(others, key=lambda session: session.date) == [
        stored.latency[place] for place in kept
    ]
    assert mine.ratios == pytest.approx(RATIOS)
    assert mine.hardware == HERE


def test_what_is_not_timed_here_keeps_what_was_timed_elsewhere() -> None:
    stored = stored_on(ELSEWHERE)
    device = FakeDevice(hardware=HERE, lacks={"fp16 arithmetic": "emulates it"})
    assert recorded(stored=stored, on=device, timings=()).latency == stored.latency


# What is said


def test_the_differences_say_old_and_new_of_every_figure() -> None:
    old = entry()
    session = latency((0.5,))
    new = entry(latency=(session,), counts=counts(mm=1).beside(host_calls(610)), ssim=None)
    assert refresh.differences(SCENARIO, old, new) == (
        f"{SCENARIO.id}: latency 100 ms -> 50 ms, ratio x1.000 -> x0.500, peak 512.00 MiB, "
        "SSIM 0.9950 -> none, operations 1,400 -> 1 (-1,399, -99.9 %), "
        "host calls (a step) 600 -> 610 (+10, +1.7 %)"
    )
    assert refresh.differences(SCENARIO, None, new) == f"{SCENARIO.id}: new"


# As a whole, on a bench that measures nothing

BF16 = ("-k", "[storybook-bf16]", "--perf-update-baselines", "--perf-reason")


def test_on_another_processor_the_command_that_a_failure_prints_accepts_it(tmp_path: Path) -> None:
    """Of a slower call, such as that of a UNet that runs twice; it was timed elsewhere only."""
    bf16, into = "storybook-bf16", ("--perf-baselines", str(tmp_path))
    first = run_suite(*fake_bench.OPTIONS, *BF16, "first", *into)
    assert "storybook-bf16: new" in first.stdout
    assert stored_in(tmp_path).recorded.reason == "first"
    other = {"FAKE_HARDWARE": "Testron 9001", "FAKE_SLOW": bf16, "FAKE_MORE": bf16}
    chosen = ("-k", "[storybook-bf16]", *into)
    failed = run_suite(*fake_bench.OPTIONS, *chosen, **other)
    assert failed.returncode == 1
    assert "storybook-bf16: latency is " in failed.stdout
    assert run_suite(*accepting(failed.stdout), **other).returncode == 0
    passed = run_suite(*fake_bench.OPTIONS, *chosen, **other)
    assert passed.returncode == 0, passed.stdout
    assert "latency judged for 1 of 1" in passed.stdout
    assert len(stored_in(tmp_path).latency) == 1


def accepting(said: str) -> list[str]:
    """The command that a failure printed, on the bench."""
    command = re.search(r"accept it with: (.* --perf-reason \"WHY\")", said)
    assert command is not None, said
    options = shlex.split(command[1])[shlex.split(command[1]).index("--perf-device") :]
    return [*fake_bench.PLUGIN, "--perf-update-baselines", *options]


def stored_in(folder: Path) -> Entry:
    made = BaselineStore(folder).entry(fake_bench.KEY, "storybook", "bf16")
    assert made is not None
    return made


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
