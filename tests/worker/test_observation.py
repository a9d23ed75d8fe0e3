"""One scenario observed on a fake device: what is seen, and what is left behind."""

from __future__ import annotations

import contextlib
import gc
import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch

from fixtures.devices import Trace
from fixtures.records.counts import COMPONENT_CALLS, OPERATIONS, TORCH_CALLS, Counts, Row
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.records.record import CARRIED_OVER, LEAK, STATE
from fixtures.records.run import WHOLE
from fixtures.worker.observation import ANOTHER, REPEATS_WITHIN, Observation, observe
from tests.support.counting import counted, counts
from tests.support.fake_device import FakeDevice
from tests.support.fake_scenarios import IMAGES, STEPS, fake_scenario


@pytest.fixture(autouse=True)
def _no_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search for none: fakes leave none behind, and each search goes through all of torch."""
    monkeypatch.setattr(gc, "collect", lambda generation=2: 0)


def draw(**changes: Any) -> Any:
    return IMAGES[::-1] if "prompt" in changes else IMAGES


def test_one_call_is_observed_after_a_warm_up_and_the_technique_is_left_after_the_last() -> None:
    device = FakeDevice(
        trace=Trace(
            component_peak_bytes={WHOLE: 1000},
            counts=counts(mm=3),
            faults={LEAK: "a call left 2.00 MiB allocated"},
            bound_ms=500.0,
        )
    )
    calls: list[dict[str, Any]] = []
    left_after: list[int] = []

    def drawn(**changes: Any) -> Any:
        calls.append(changes)
        device.now_s += 7.0
        return draw(**changes)

    scenario = fake_scenario(
        drawn, complaint="the UNet is in fp32", leave=lambda: left_after.append(len(calls))
    )
    seen = observe(scenario, device)
    another: dict[str, Any] = {"steps": scenario.workload.representative_steps, **ANOTHER}
    assert calls == [another, {"steps": STEPS}, another]
    assert left_after == [3]
    assert np.array_equal(seen.images, IMAGES)
    assert replace(seen, images=IMAGES, other_image=IMAGES) == Observation(
        other_image=IMAGES,
        scenario="fake-tried",
        component_peak_bytes={WHOLE: 1000},
        counts=replace(counts(mm=3), python="{}.{}".format(*sys.version_info)),
        call_s=7.0,
        images=IMAGES,
        inactive="the UNet is in fp32",
        bound_ms=500.0,
        faults={LEAK: "a call left 2.00 MiB allocated"},
    )


def test_what_a_device_cannot_count_while_it_observes_is_counted_in_a_call_of_its_own() -> None:
    calls: list[dict[str, Any]] = []

    def drawn(**changes: Any) -> Any:
        calls.append(changes)
        return draw(**changes)

    device = FakeDevice(trace=Trace(component_peak_bytes={WHOLE: 1000}), counted=counts(mm=5))
    scenario = fake_scenario(drawn)
    assert observe(scenario, device).counts.by_name(OPERATIONS) == {"aten::mm": 5}
    few: dict[str, Any] = {"steps": scenario.workload.representative_steps}
    assert calls[2:] == [few, {**few, **ANOTHER}]


class Scheduler:
    """Steps from latents to latents."""

    def step(self, predicted: Any, sample: Any) -> Any:
        """Nothing to do."""


@pytest.mark.parametrize("telling", [3, 4])
@pytest.mark.parametrize("lacks", [{}, {"torch's Python": "it is the simulation's"}], ids=len)
def test_the_host_s_calls_are_counted_in_all_steps_and_torch_s_in_a_call_of_few(
    lacks: dict[str, str], telling: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = Scheduler()
    calls: list[int] = []

    def drawn(steps: int, **changes: Any) -> Any:
        calls.append(steps)
        for _ in range(steps):
            scheduler.step(None, None)
            torch.nn.Identity()(None)
        return draw(**changes)

    scenario = fake_scenario(drawn, scheduler=scheduler)
    assert scenario.workload.call.steps == 4
    monkeypatch.setattr(scenario.workload, "representative_steps", telling)
    seen = observe(scenario, FakeDevice(lacks=lacks)).counts
    assert calls == [telling, 4, telling]
    assert seen.host_steps == telling
    assert (TORCH_CALLS in seen.kinds) == (not lacks)
    if not lacks:
        identity = Row(TORCH_CALLS, "Identity.forward", "torch/nn/modules/linear.py")
        assert seen.rows[identity].in_all == telling


def test_a_technique_that_skips_work_is_counted_in_all_steps() -> None:
    scheduler = Scheduler()

    def drawn(steps: int = STEPS, **changes: Any) -> Any:
        for _ in range(steps):
            scheduler.step(None, None)
        return draw(**changes)

    scenario = fake_scenario(drawn, scheduler=scheduler, skips=True)
    assert observe(scenario, FakeDevice()).counts.host_steps == STEPS


# What a call leaves to the next one


class Pipeline:
    """Draws noise that depends on prompt and seed, and on what `keep` says that it keeps.

    It hands out the same array each time, which the next call writes to.
    """

    def __init__(self, keep: Callable[[list[dict[str, Any]]], float] = lambda before: 0.0) -> None:
        self.keep = keep
        self.calls: list[dict[str, Any]] = []
        self.images = np.empty_like(IMAGES)

    def __call__(self, **changes: Any) -> Any:
        kept = self.keep(self.calls)
        self.calls.append(changes)
        seed = hash((changes.get("prompt", "") == ANOTHER["prompt"], changes.get("seed", 0)))
        self.images[:] = np.random.default_rng(abs(seed)).random(IMAGES.shape) / 2
        self.images[-1, 0, 0, 0] += kept
        return self.images


@pytest.mark.parametrize(
    ("keep", "lacks", "largest"),
    [
        (lambda before: 0.2 if before and "prompt" not in before[-1] else 0.0, {}, 51),
        (lambda before: 1.1 * REPEATS_WITHIN * bool(before), {}, 1),
        (lambda before: 0.9 * REPEATS_WITHIN * bool(before), {}, 0),
        (lambda before: np.nan, {}, 0),
        (lambda before: 0.2 * bool(before), {"images": "a simulated call draws none"}, 0),
    ],
    ids=["the call before", "little", "rounding", "not even an image", "not compared"],
)
def test_a_pipeline_that_keeps_more_than_rounding_between_calls_is_a_fault(
    keep: Callable[[list[dict[str, Any]]], float], lacks: dict[str, str], largest: int
) -> None:
    fault = (
        "after a call with another prompt the same pipeline draws something else than when it was "
        f"fresh (values differ by up to {largest}/255)"
    )
    seen = observe(fake_scenario(Pipeline(keep)), FakeDevice(lacks=lacks))
    assert seen.faults == ({CARRIED_OVER: fault} if largest else {})


def test_a_picture_that_no_prompt_and_no_seed_changes_is_a_fault() -> None:
    seen = observe(fake_scenario(lambda **_: IMAGES), FakeDevice())
    same = "calls with another prompt and another seed draw the same picture"
    assert seen.faults == {CARRIED_OVER: same}


@dataclass
class Telling(FakeDevice):
    """What `tell` counts is told of each observed call once it has ended."""

    tell: Callable[[], Counts] = Counts

    @contextlib.contextmanager
    def observe(self, pipeline: Any, *, compiled: bool = False) -> Iterator[Trace]:
        trace = Trace(counts=counts(mm=1))
        yield trace
        trace.counts = self.tell()


@pytest.mark.parametrize("lacks", [{}, {"images": "a simulated call draws none"}], ids=len)
def test_a_pipeline_whose_later_calls_do_more_is_a_fault(lacks: dict[str, str]) -> None:
    numbers = itertools.count(1)

    def tell() -> Counts:
        """Each further call clones once more; the second wakes the text encoder."""
        number = next(numbers)
        operations = {"aten::mm in Linear": 9, "aten::clone in the pipeline": number}
        return counted(
            operations={**operations, "aten::clone in Linear": number},
            components={"text_encoder (batch of 1)": min(number, 2)},
        )

    seen = observe(fake_scenario(draw), Telling(lacks=lacks, tell=tell))
    assert seen.faults == {
        CARRIED_OVER: "a later call of the same pipeline does more than its first: "
        "clone in Linear +2, text_encoder (batch of 1) +1"
    }


@pytest.mark.parametrize("grows", [0, 1])
def test_where_nobody_compares_images_the_first_call_is_short(grows: int) -> None:
    """It is made again where a call of more steps does not do as much more."""
    work, scheduler, row = Counter[Row](), Scheduler(), Row(OPERATIONS, "aten::mm", "Linear")
    calls: list[int] = []

    class Counting(FakeDevice):
        @contextlib.contextmanager
        def observe(self, pipeline: Any, *, compiled: bool = False) -> Iterator[Trace]:
            work.clear()
            trace = Trace(reading=work.copy)
            yield trace
            trace.counts = Counts.of(work)

        def observed_steps(self, steps: int, telling: int) -> int:
            return telling

    def drawn(steps: int, **changes: Any) -> Any:
        calls.append(steps)
        for _ in range(steps):
            work[row] += 10 + grows * len(calls)
            scheduler.step(None, None)
        work[row] += 5
        return draw(**changes)

    lacks = dict.fromkeys(("images", "torch's Python"), "nothing runs")
    seen = observe(fake_scenario(drawn, scheduler=scheduler), Counting(lacks=lacks))
    assert calls == [2, 3, *grows * [2]]
    more = "a later call of the same pipeline does more than its first: mm in Linear +4"
    assert seen.faults == ({CARRIED_OVER: more} if grows else {})


def test_an_activation_check_that_gives_no_reason_is_none() -> None:
    scenario = fake_scenario(draw)
    checked: Any = lambda context: True  # noqa: E731
    technique = replace(scenario.technique, activation_check=checked)
    seen = observe(replace(scenario, technique=technique), Telling())
    assert seen.inactive == "its activation check returned True, which is neither None nor a reason"


@pytest.mark.parametrize("grows", [False, True])
def test_what_a_longer_prompt_does_more_is_no_fault(
    grows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = Pipeline()

    def tell() -> Counts:
        longer = "prompt" not in drawn.calls[-1]
        more = int(longer or (grows and len(drawn.calls) > 1))
        return counted(operations={"aten::mm": 1, "aten::equal": more})

    device = Telling(tell=tell)
    monkeypatch.setattr(device, "observed_steps", lambda steps, telling: telling)
    seen = observe(fake_scenario(drawn), device)
    more = "a later call of the same pipeline does more than its first: equal +1"
    assert seen.faults == ({CARRIED_OVER: more} if grows else {})


def test_a_step_is_what_is_counted_between_two_calls_of_the_scheduler() -> None:
    """And no share of the call: what is done once is in none, as many as there may be."""
    cloned, scheduler = 0, Scheduler()
    clone, denoiser = Row(OPERATIONS, "aten::clone", "UNet"), {"denoiser (batch of 2)": STEPS}
    trace = Trace(
        counts=counted(operations={"aten::clone in UNet": 1}, components=denoiser),
        reading=lambda: {clone: cloned},
    )

    def drawn(steps: int, **changes: Any) -> Any:
        nonlocal cloned
        for _ in range(steps):
            cloned += 2
            scheduler.step(torch.zeros(3, 4), torch.zeros(3, 4))
        cloned += 4 * steps  # the VAE's
        return IMAGES

    seen = observe(fake_scenario(drawn, scheduler=scheduler), FakeDevice(trace=trace))
    assert seen.counts.rows[clone] == (1, 2)
    scheduled = {"scheduler (batch of 3)": STEPS}
    assert seen.counts.by_name(COMPONENT_CALLS) == {**denoiser, **scheduled}


@pytest.fixture
def switch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Changes a setting of the process, until the test ends."""
    before = torch.backends.cudnn.benchmark
    yield lambda: setattr(torch.backends.cudnn, "benchmark", not before)
    torch.backends.cudnn.benchmark = before


def test_what_is_left_behind_is_named(switch: Callable[[], None]) -> None:
    before = torch.backends.cudnn.benchmark
    seen = observe(fake_scenario(draw, enter=switch), FakeDevice())
    change = f"cudnn_benchmark: {before} -> {not before}"
    assert seen.faults == {STATE: f"leaving it did not restore {change}"}


@pytest.mark.parametrize("where", ["enter", "draw", "leave"])
def test_what_raises_is_a_broken_scenario(where: str) -> None:
    calls = 0

    def give_way() -> None:
        raise KeyError("unet")

    def drawn(**_: Any) -> Any:
        nonlocal calls
        calls += 1
        if (where, calls) == ("draw", 2):
            give_way()
        return IMAGES

    hooks: dict[str, Any] = {} if where == "draw" else {where: give_way}
    with pytest.raises(ScenarioError) as caught:
        observe(fake_scenario(drawn, **hooks), FakeDevice())
    assert str(caught.value) == "fake-tried: raised KeyError: 'unet'"
    assert caught.value.outcome is Outcome.BROKEN
