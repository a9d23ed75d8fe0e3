"""What is timed in this process, on a fake clock: what counts, and what does not."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from fixtures.measuring import control
from fixtures.measuring import timed as timed_module
from fixtures.measuring.failures import scenario_errors
from fixtures.measuring.observation import WARM_UP_STEPS
from fixtures.measuring.rounds import (
    ConcurrentReference,
    Plan,
    Round,
    Timed,
    finished,
    paired_rounds,
)
from fixtures.measuring.sampler import pair_of
from fixtures.measuring.timed import (
    MAX_SETTLING,
    TimedControl,
    TimedFrozen,
    TimedPipeline,
    frozen_errors,
)
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.workloads import Workload
from fixtures.workloads.base import FrozenSource
from tests.support.fake_device import FakeDevice
from tests.support.fake_scenarios import STEPS, FakeScenario, FakeWorkload, fake_scenario

REFERENCE_S = 1.0
CANDIDATE_S = 1.5
SET_UP_S = 100.0


@dataclass
class Bench:
    """A fake device, pipelines that let its clock run, and a log of what they did.

    Warming up and building take `SET_UP_S`; so does each randomisation of a layout.
    """

    device: FakeDevice = field(default_factory=lambda: FakeDevice(layout_s=SET_UP_S))
    log: list[str] = field(default_factory=list)

    def scenario(self, seconds: Callable[[int], float], name: str, **options: Any) -> FakeScenario:
        """A scenario whose n-th timed call lasts `seconds(n)`."""
        timed = 0

        def draw(steps: int | None = None) -> None:
            nonlocal timed
            if steps != STEPS:
                self.log.append(f"{name} {steps} steps")
                self.device.now_s += SET_UP_S
                return
            timed += 1
            self.log.append(name)
            self.device.now_s += seconds(timed)

        def note(what: str) -> Callable[[], None]:
            def noted() -> None:
                self.log.append(f"{what} {name}")
                self.device.now_s += SET_UP_S

            return noted

        return fake_scenario(draw, name, enter=note("build"), leave=note("leave"), **options)

    def pair(
        self, seconds: Callable[[int], float] = lambda number: CANDIDATE_S
    ) -> tuple[Timed | ConcurrentReference, Timed]:
        """The reference R and the candidate C."""
        reference = self.scenario(lambda number: REFERENCE_S, "R")
        return pair_of(self.scenario(seconds, "C", others={"fp32": reference}), self.device)

    @property
    def timed(self) -> str:
        """The whole calls in their order."""
        return "".join(entry for entry in self.log if len(entry) == 1)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_building_and_warming_up_are_not_timed(bench: Bench) -> None:
    timing = finished(paired_rounds(fake_scenario(print), *bench.pair(), Plan(2, 2)))
    assert bench.timed == "RCRCR" * 2
    for group in timing.groups:
        assert group.reference_s == (REFERENCE_S,) * 3
        assert group.candidate_s == (CANDIDATE_S,) * 2


def test_a_pipeline_is_built_once_and_laid_out_anew_for_each_group(bench: Bench) -> None:
    one = TimedPipeline(bench.scenario(lambda number: 1.0, "C"), bench.device)
    for _ in range(3):
        one.place()
    assert bench.log == ["build C", f"C {WARM_UP_STEPS} steps", "C 1 steps", "C 1 steps"]
    first, *others = bench.device.laid_out
    assert len(others) == 2
    assert all(other is first for other in others)


def test_leaving_reverts_the_technique_once(bench: Bench) -> None:
    one = TimedPipeline(bench.scenario(lambda number: 1.0, "C"), bench.device)
    one.place()
    released = bench.device.released
    one.close()
    one.close()
    assert bench.log.count("leave C") == 1
    assert bench.device.released > released


def test_what_was_never_placed_can_be_closed(bench: Bench) -> None:
    TimedPipeline(bench.scenario(lambda number: 1.0, "C"), bench.device).close()
    assert bench.log == []


def test_both_ends_of_a_round_are_synchronised(bench: Bench) -> None:
    one = TimedPipeline(bench.scenario(lambda number: 1.0, "C"), bench.device)
    one.place()
    before = bench.device.synchronised
    one.round()
    assert bench.device.synchronised == before + 2


def test_a_round_has_the_judged_clock_and_the_wall(bench: Bench) -> None:
    one = TimedPipeline(bench.scenario(lambda number: CANDIDATE_S, "C"), bench.device)
    one.place()
    done = one.round()
    assert done.judged_s == CANDIDATE_S
    assert 0 < done.wall_s < 1.0, "the fake takes no time on the wall"
    assert done.disturbance is None


def test_what_the_device_s_watch_sees_goes_with_the_round_and_the_evidence(bench: Bench) -> None:
    class Hot:
        def disturbance(self) -> str | None:
            return "it was hot"

        def sentence(self) -> str:
            return "at most 90 °C"

    bench.device.watching = Hot()
    one = TimedPipeline(bench.scenario(lambda number: 1.0, "C"), bench.device)
    one.place()
    assert one.round().disturbance == "it was hot"
    assert one.evidence().sentence().endswith("; at most 90 °C")


@pytest.mark.parametrize(
    ("gain", "calls"),
    [
        (lambda number: 1.0, 2),
        (lambda number: {1: 1.5, 2: 1.2}.get(number, 1.0), 4),
        (lambda number: 0.5**number, 1 + MAX_SETTLING),
    ],
    ids=["at once", "in the end", "never"],
)
def test_a_device_that_warms_up_is_called_until_it_is_stable(
    gain: Callable[[int], float], calls: int, bench: Bench
) -> None:
    bench.device.warms_up = True
    one = TimedPipeline(bench.scenario(gain, "C"), bench.device)
    one.place()
    assert bench.timed == "C" * calls
    one.place()
    assert bench.timed == "C" * calls, "only a new pipeline is settled"


@pytest.mark.parametrize("where", ["building", "warming up", "a round"])
def test_what_raises_is_a_broken_scenario(where: str, bench: Bench) -> None:
    def give_way() -> None:
        raise MemoryError("injected")

    def draw(steps: int | None = None) -> None:
        if steps == STEPS or where == "warming up":
            give_way()

    enter = give_way if where == "building" else list
    one = TimedPipeline(fake_scenario(draw, enter=enter), bench.device)

    def group() -> Round:
        one.place()
        return one.round()

    with pytest.raises(ScenarioError) as caught:
        group()
    assert caught.value.outcome is Outcome.BROKEN
    assert str(caught.value).startswith("fake-tried: ran out of memory on fake (injected)")
    one.close()


# The control workload


@dataclass
class FakeControl:
    """Counts itself, and lets the device's clock run by 2 s a call."""

    device: FakeDevice
    made: int = 0
    calls: int = 0

    def __call__(self, torch_device: Any, repetitions: int) -> Callable[[], None]:
        self.made += 1
        return self._call

    def _call(self) -> None:
        self.calls += 1
        self.device.now_s += 2.0


@pytest.fixture
def fake_control(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> FakeControl:
    fake = FakeControl(bench.device)
    monkeypatch.setattr(control, "ControlWorkload", fake)
    return fake


def test_without_a_frozen_reference_fp32_is_timed_against_the_control_and_all_else_against_fp32(
    bench: Bench, fake_control: FakeControl
) -> None:
    fp32 = bench.scenario(lambda number: REFERENCE_S, "fp32")
    reference, candidate = pair_of(fp32, bench.device)
    timing = finished(paired_rounds(fp32, reference, candidate, Plan(2, 1)))
    assert timing.groups[0].reference_s == (2.0, 2.0)
    assert timing.groups[0].candidate_s == (REFERENCE_S,)
    assert fake_control.made == 2, "once for each group"
    assert fake_control.calls == 2 * (1 + 2), "once to warm up, then twice"
    other = bench.scenario(lambda number: 1.0, "C", others={"fp32": fp32})
    assert isinstance(pair_of(other, bench.device)[0], TimedPipeline)


def test_the_control_workload_settles_where_the_device_warms_up(
    bench: Bench, fake_control: FakeControl
) -> None:
    bench.device.warms_up = True
    timed = TimedControl(bench.device)
    timed.place()
    assert fake_control.calls == 1 + 2
    timed.place()
    assert fake_control.calls == 1 + 2 + 1


def test_the_control_workload_has_no_round_before_it_is_placed(
    bench: Bench, fake_control: FakeControl
) -> None:
    timed = TimedControl(bench.device)
    with pytest.raises(RuntimeError, match="placed"):
        timed.round()
    timed.place()
    assert isinstance(timed.round(), Round)
    timed.close()
    with pytest.raises(RuntimeError, match="placed"):
        timed.round()


# The frozen reference


@dataclass
class FakeProgram:
    """Logs what is asked of it, and lets the device's clock run by 2 s a call.

    The call of the number `fails_at` raises `error`.
    """

    bench: Bench
    fails_at: int = 0
    error: Exception = field(default_factory=lambda: RuntimeError("no kernel\nfor this"))
    calls: int = 0

    def relocate(self) -> None:
        self.bench.log.append("relocate")

    def draw(self, call: Any, steps: int) -> None:
        self.calls += 1
        if self.calls == self.fails_at:
            raise self.error
        self.bench.log.append(f"draw {steps} steps")
        self.bench.device.now_s += 2.0


class FrozenWorkload(FakeWorkload):
    """A workload with a frozen reference."""

    frozen = FrozenSource(Path("nowhere"), (1, 2))


def with_frozen(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, **program: Any
) -> tuple[FakeScenario, FakeProgram]:
    """A scenario whose workload has a frozen reference, and the program that stands for it."""
    fake = FakeProgram(bench, **program)
    monkeypatch.setattr(timed_module, "frozen_program", lambda workload, device: fake)
    scenario = bench.scenario(lambda number: CANDIDATE_S, "C")
    return replace(scenario, workload=cast(Workload, FrozenWorkload())), fake


@pytest.mark.parametrize("name", ["C", "fp32"])
def test_with_a_frozen_reference_everything_is_timed_against_it(
    name: str, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, _ = with_frozen(bench, monkeypatch)
    scenario = replace(scenario, technique=replace(scenario.technique, id=name))
    reference, candidate = pair_of(scenario, bench.device)
    assert isinstance(reference, TimedFrozen)
    timing = finished(paired_rounds(scenario, reference, candidate, Plan(2, 1)))
    assert timing.groups[0].reference_s == (2.0, 2.0)
    assert timing.groups[0].candidate_s == (CANDIDATE_S,)


def test_the_frozen_reference_is_built_once_and_laid_out_anew_for_each_group(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, fake = with_frozen(bench, monkeypatch)
    timed = TimedFrozen(scenario, bench.device)
    for _ in range(2):
        timed.place()
    assert isinstance(timed.round(), Round)
    warm_up = [f"draw {WARM_UP_STEPS} steps", "relocate", "draw 1 steps"]
    assert bench.log == [*warm_up, f"draw {STEPS} steps"]
    assert bench.device.laid_out == [None, None]
    bench.device.warms_up = True
    fake.calls = 0
    TimedFrozen(scenario, bench.device).place()
    assert fake.calls == 1 + 2, "it settles where the device warms up"


def test_the_frozen_reference_has_no_round_before_it_is_placed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, _ = with_frozen(bench, monkeypatch)
    timed = TimedFrozen(scenario, bench.device)
    with pytest.raises(RuntimeError, match="placed"):
        timed.round()
    timed.place()
    timed.close()
    with pytest.raises(RuntimeError, match="placed"):
        timed.round()


@pytest.mark.parametrize("fails_at", [1, 2, 3], ids=["warm-up", "second warm-up", "round"])
def test_a_frozen_reference_that_fails_leaves_nothing_to_compare_with(
    fails_at: int, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, _ = with_frozen(bench, monkeypatch, fails_at=fails_at)
    timed = TimedFrozen(scenario, bench.device)

    def group() -> Round:
        timed.place()
        timed.place()
        return timed.round()

    with pytest.raises(ScenarioError) as caught:
        group()
    assert caught.value.outcome is Outcome.NO_BASELINE
    assert str(caught.value).startswith(
        "fake-C: the frozen reference does not run here (no kernel for this): there is nothing"
    )
    timed.close()


def test_the_memory_of_a_frozen_reference_that_failed_is_released() -> None:
    class Activations:
        pass

    held: list[weakref.ref[Activations]] = []

    def draw() -> None:
        activations = Activations()
        held.append(weakref.ref(activations))
        raise RuntimeError("no kernel")

    errors: list[ScenarioError] = []
    try:
        with frozen_errors(fake_scenario(print)):
            draw()
    except ScenarioError as error:
        errors.append(error)
    assert [error.outcome for error in errors] == [Outcome.NO_BASELINE]
    assert [reference() for reference in held] == [None]


@pytest.mark.parametrize("error", [MemoryError("injected"), RuntimeError("CUDA out of memory.")])
def test_an_exhausted_memory_is_no_fault_of_the_frozen_reference(
    error: Exception, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, _ = with_frozen(bench, monkeypatch, fails_at=1, error=error)
    reference, candidate = pair_of(scenario, bench.device)

    def sample() -> None:
        with scenario_errors(scenario, bench.device):
            finished(paired_rounds(scenario, reference, candidate, Plan(2, 1)))

    with pytest.raises(ScenarioError, match="ran out of memory on fake") as caught:
        sample()
    assert caught.value.outcome is Outcome.BROKEN


def test_a_workload_without_a_frozen_reference_has_no_program(bench: Bench) -> None:
    scenario = bench.scenario(lambda number: 1.0, "C")
    with pytest.raises(ValueError, match="has no frozen reference"):
        timed_module.frozen_program(scenario.workload, bench.device)
