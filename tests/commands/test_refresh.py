"""A refresh records what repeats, is right and is possible, and nothing else."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fixtures import refresh
from fixtures.baselines import BaselineStore, Entry
from fixtures.machine import host_memory_bytes
from fixtures.measurement import Bench, Observation, ScenarioError
from fixtures.rounds import Timing
from fixtures.scenarios import Scenario
from fixtures.techniques import CATALOGUE
from fixtures.verdicts import Outcome
from fixtures.workloads import WORKLOADS
from fixtures.yardstick import VERSION
from tests.records import entry, timing

SCENARIO = Scenario(WORKLOADS["storybook"], CATALOGUE["fp16"])
PICTURES = np.random.default_rng(0).random((1, 32, 32, 3))
GIB = 2**30
RATIOS = (0.5, 0.51, 0.49, 0.505, 0.495, 0.5, 0.498, 0.502, 0.493, 0.507)


def observation(**changes: Any) -> Observation:
    sound = Observation(
        scenario=SCENARIO.id,
        peak_bytes={"whole": 1000, "vae": 400},
        counters={"aten::mm": 10},
        call_s=1.0,
        pictures=PICTURES,
        inactive=None,
        left_behind=(),
    )
    return replace(sound, **changes)


def device(name: str = "cpu", **hardware: Any) -> Any:
    return SimpleNamespace(
        name=name,
        key=name,
        memory_source="ledger" if name == "cpu" else "allocator",
        hardware=hardware,
        missing=lambda need: None,
        release=lambda: None,
    )


def record(
    *seen: Observation,
    timings: Iterable[Timing] = tuple(timing(ratio) for ratio in RATIOS),
    on: Any = None,
    of: Scenario = SCENARIO,
) -> Entry:
    """Refresh where the scenario shows these observations in turn, the last one for ever."""
    showing = itertools.chain(seen, itertools.repeat(seen[-1] if seen else observation()))

    def observer(asked: Scenario, _: Any) -> Observation:
        return observation() if asked.id != of.id else next(showing)

    on = on or device(threads=1)
    looks = iter(timings)
    return refresh.record(of, on, "why", look=lambda: next(looks), bench=Bench(on, observer))


def refusal(*seen: Observation, **options: Any) -> ScenarioError:
    with pytest.raises(ScenarioError) as caught:
        record(*seen, **options)
    assert str(caught.value).startswith(f"{SCENARIO.id}: ")
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_good_run_gives_an_entry_that_can_be_stored_and_read_again(tmp_path: Any) -> None:
    made = record()
    assert made.ratios == pytest.approx(RATIOS)
    assert made.latency_ms == (100.0,) * refresh.LOOKS
    assert made.peak_memory_bytes == {"whole": 1000, "vae": 400}
    assert made.counters == {"aten::mm": 10}
    assert made.ssim == 1.0
    assert made.recorded["reason"] == "why"
    assert made.hardware == {"threads": 1}
    store = BaselineStore(tmp_path)
    store.stage("cpu", "storybook", "fp16", made)
    store.commit()
    again = store.entry("cpu", "storybook", "fp16")
    assert again is not None
    assert again.to_json() == made.to_json()


def test_an_entry_says_what_was_timed_and_of_which_yardstick() -> None:
    steps = SCENARIO.workload.steps_of_timed_call
    assert record().timing == {"steps": steps}
    assert record(of=SCENARIO.reference).timing == {"steps": steps, "yardstick": VERSION}


def test_the_reference_has_no_likeness_to_itself() -> None:
    assert record(of=SCENARIO.reference).ssim is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"counters": {"aten::mm": 11}}, "counters differs between two measurements (aten::mm"),
        ({"counters": {}}, "aten::mm: 10 and 0"),
        ({"peak_bytes": {"whole": 1001, "vae": 400}}, "peak memory differs"),
    ],
)
def test_two_measurements_that_disagree_are_refused(changes: Any, words: str) -> None:
    refused = refusal(observation(), observation(**changes))
    assert refused.outcome is Outcome.INCONCLUSIVE
    assert words in str(refused)


def test_an_allocator_s_peak_may_move_by_the_tolerance_and_no_more() -> None:
    def twice(peak_bytes: int) -> Any:
        return observation(), observation(peak_bytes={"whole": peak_bytes, "vae": 400})

    assert record(*twice(1010), on=device("cuda")).peak_memory_bytes["whole"] == 1000
    refused = refusal(*twice(1020), on=device("cuda"))
    assert "peak memory differs" in str(refused)


def test_processes_that_disagree_are_refused_with_the_evidence() -> None:
    refused = refusal(timings=[timing(ratio) for ratio in (0.4, 0.5, 0.6, 0.7, 0.8) * 2])
    assert refused.outcome is Outcome.INCONCLUSIVE
    assert "10 processes differ by 26%" in str(refused)
    assert "load 0.5" in str(refused)


def test_a_wrong_picture_is_refused() -> None:
    refused = refusal(observation(pictures=PICTURES[:, ::-1]))
    assert refused.outcome is Outcome.BROKEN
    assert "below its limit" in str(refused)


def test_a_picture_with_nan_is_refused() -> None:
    refused = refusal(observation(pictures=PICTURES * math.nan))
    assert refused.outcome is Outcome.BROKEN


@pytest.mark.parametrize("when", ["first", "second"])
def test_a_technique_that_is_not_in_effect_is_refused(when: str) -> None:
    seen = [observation(inactive="no hook"), observation()]
    refused = refusal(*(seen if when == "first" else reversed(seen)))
    assert refused.outcome is Outcome.NOT_ACTIVE


def test_a_call_that_leaks_is_refused() -> None:
    refused = refusal(observation(leak="a call left 2.00 MiB allocated; still alive: 1 x float32"))
    assert "still alive: 1 x float32; nothing is recorded" in str(refused)


def test_a_switch_that_is_left_behind_is_refused() -> None:
    refused = refusal(observation(left_behind=("gradients: True -> False",)))
    assert refused.outcome is Outcome.BROKEN
    assert "gradients: True -> False" in str(refused)


@pytest.mark.parametrize(
    "changes",
    [
        {"peak_bytes": {"whole": 0}},
        {"peak_bytes": {"whole": 1000, "vae": -1}},
        {"peak_bytes": {"whole": math.inf}},
        {"counters": {"aten::mm": -1}},
    ],
)
def test_an_impossible_figure_is_refused(changes: Any) -> None:
    refused = refusal(observation(**changes))
    assert refused.outcome is Outcome.BROKEN
    assert "impossible, nothing is recorded" in str(refused)


@pytest.mark.parametrize("busy_ms", [0.0, -1.0, math.nan, math.inf])
def test_an_impossible_latency_is_refused(busy_ms: float) -> None:
    timings = [*(timing(ratio) for ratio in RATIOS[:-1]), timing(0.5, busy_ms=busy_ms)]
    assert "impossible" in str(refusal(timings=timings))


@pytest.mark.parametrize(
    ("on", "memory_bytes"),
    [(device(), host_memory_bytes()), (device("cuda", memory_gib=2), 2 * GIB)],
    ids=["cpu", "cuda"],
)
def test_more_memory_than_the_device_has_is_refused_and_all_of_it_is_not(
    on: Any, memory_bytes: int
) -> None:
    assert record(observation(peak_bytes={"whole": memory_bytes}), on=on)
    refused = refusal(observation(peak_bytes={"whole": memory_bytes + 1}), on=on)
    assert "is more than the" in str(refused)


def test_a_failing_look_refuses_the_whole() -> None:
    def fail() -> Timing:
        raise ScenarioError(Outcome.BROKEN, f"{SCENARIO.id}: a look ended with code 1")

    looks: Callable[[], Timing] = fail
    refused = refusal(timings=(looks() for _ in RATIOS))
    assert "ended with code 1" in str(refused)


def test_the_differences_say_old_and_new_of_every_figure() -> None:
    old = entry()
    new = entry(latency_ms=(50.0,), ratios=(0.5,), counters={"aten::mm": 1}, ssim=None)
    assert refresh.differences(SCENARIO, old, new) == (
        f"{SCENARIO.id}: latency 100 ms -> 50 ms, ratio x1.000 -> x0.500, peak 512.00 MiB, "
        "2 counters changed, SSIM 0.9950 -> none"
    )
    assert refresh.differences(SCENARIO, None, new) == f"{SCENARIO.id}: new"
