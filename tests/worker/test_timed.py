"""What is timed in this process, on a fake clock: what counts, and what does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from fixtures.catalogue.matrix import Scenario
from fixtures.catalogue.workloads import Workload
from fixtures.catalogue.workloads.base import FrozenSource
from fixtures.devices import Watch
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.worker import timed as timed_module
from fixtures.worker.rounds import Round
from fixtures.worker.timed import TimedHere, candidate_of, reference_of
from tests.support.fake_device import FakeDevice
from tests.support.fake_scenarios import STEPS, FakeScenario, FakeWorkload, fake_scenario

CANDIDATE_S = 1.5
SET_UP_S = 100.0


class TimedBench:
    """Warming up and building take `SET_UP_S`; so does each new layout.

    `calls` are by name the steps of each call, `built` the names of pipelines.
    """

    def __init__(self) -> None:
        self.device = FakeDevice(layout_s=SET_UP_S)
        self.calls: dict[str, list[int | None]] = {}
        self.built: list[str] = []

    def scenario(
        self, name: str, seconds: Callable[[int], float] = lambda number: 1.0, **options: Any
    ) -> FakeScenario:
        """A scenario whose n-th timed call lasts `seconds(n)`."""

        def draw(steps: int | None = None) -> None:
            self.count(name, steps, seconds)

        def built() -> None:
            self.built.append(name)
            self.device.now_s += SET_UP_S

        return fake_scenario(draw, name, enter=built, **options)

    def count(self, name: str, steps: int | None, seconds: Callable[[int], float]) -> None:
        """Note a call, and let the clock run."""
        self.calls.setdefault(name, []).append(steps)
        self.device.now_s += seconds(self.timed(name)) if steps == STEPS else SET_UP_S

    def timed(self, name: str) -> int:
        """How many whole calls there were."""
        return self.calls.get(name, []).count(STEPS)


@pytest.fixture
def bench() -> TimedBench:
    return TimedBench()


def rounds_of(scenario: Scenario, bench: TimedBench) -> tuple[set[float], set[float]]:
    """How long rounds of the reference and of the scenario take, in two places of three each."""
    sides = reference_of(scenario, bench.device), candidate_of(scenario, bench.device)
    taken: tuple[set[float], set[float]] = (set(), set())
    for _ in range(2):
        for side, seconds in zip(sides, taken, strict=True):
            side.place()
            seconds.update(side.round().judged_s for _ in range(3))
    return taken


def group(timed: TimedHere, placed: int = 1) -> Round:
    """A round after so many layouts."""
    for _ in range(placed):
        timed.place()
    return timed.round()


def test_a_pipeline_is_built_once_and_laid_out_anew_for_each_group(bench: TimedBench) -> None:
    timed = candidate_of(bench.scenario("C"), bench.device)
    with pytest.raises(ScenarioError, match="placed before its first round"):
        timed.round()
    candidate_of(bench.scenario("D"), bench.device)
    assert bench.built == [], "neither was placed"
    for _ in range(3):
        timed.place()
    assert bench.built == ["C"]
    assert bench.calls["C"] == [2, 1, 1], "the first warm-up visits every shape"
    first, *others = bench.device.laid_out
    assert len(others) == 2
    assert all(other is first for other in others)


def test_a_round_has_both_clocks_its_ends_are_synchronised_and_it_is_watched(
    bench: TimedBench,
) -> None:
    class Hot(Watch):
        def disturbance(self) -> str | None:
            return "it was hot"

        def sentence(self) -> str:
            return "at most 90 °C"

    bench.device.watching = Hot()
    timed = candidate_of(bench.scenario("C", lambda number: CANDIDATE_S), bench.device)
    timed.place()
    before = bench.device.synchronised
    done = timed.round()
    assert bench.device.synchronised == before + 2
    assert done.judged_s == CANDIDATE_S
    assert 0 < done.wall_s < 1.0, "the fake takes no time on the wall"
    assert done.disturbance == "it was hot"
    assert timed.evidence().endswith("; at most 90 °C")


@pytest.mark.parametrize("where", ["building", "warming up", "a round"])
def test_what_raises_is_a_broken_scenario(where: str, bench: TimedBench) -> None:
    def give_way() -> None:
        raise MemoryError("injected")

    def draw(steps: int | None = None) -> None:
        if steps == STEPS or where == "warming up":
            give_way()

    enter = give_way if where == "building" else list
    timed = candidate_of(fake_scenario(draw, enter=enter), bench.device)
    with pytest.raises(ScenarioError) as caught:
        group(timed)
    assert caught.value.outcome is Outcome.BROKEN
    assert str(caught.value).startswith("fake-tried: ran out of memory on fake (injected)")


# The control workload


def test_without_a_frozen_reference_fp32_is_timed_against_the_control_and_all_else_against_fp32(
    bench: TimedBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def make(*_: object) -> Callable[[], None]:
        made.append(1)
        return lambda: bench.count("control", STEPS, lambda number: 2.0)

    def fail(*_: object) -> None:
        raise MemoryError("injected")

    monkeypatch.setattr(timed_module, "ControlWorkload", make)
    fp32 = bench.scenario("fp32")
    assert rounds_of(fp32, bench) == ({2.0}, {1.0})
    assert len(made) == 2, "once for each group"
    assert bench.timed("control") == 2 * (1 + 3), "once to warm up, then three times"
    bench.device.warms_up = True
    reference_of(fp32, bench.device).place()
    assert bench.timed("control") == 8 + 1 + 2, "it settles where the device warms up"
    other = bench.scenario("C", lambda number: CANDIDATE_S, others={"fp32": fp32})
    assert rounds_of(other, bench) == ({1.0}, {CANDIDATE_S})
    assert bench.timed("control") == 11
    monkeypatch.setattr(timed_module, "ControlWorkload", fail)
    with pytest.raises(ScenarioError, match="fake-fp32: ran out of memory on fake"):
        rounds_of(fp32, bench)


# The frozen reference


NO_KERNEL = RuntimeError("no kernel\nfor this")


class FakeProgram:
    """Lets the device's clock run by 2 s a call; the call of the number `fails_at` raises."""

    def __init__(self, bench: TimedBench, fails_at: int = 0, error: Exception = NO_KERNEL) -> None:
        self.bench = bench
        self.fails_at = fails_at
        self.error = error
        self.relocated = 0

    def relocate(self) -> None:
        self.relocated += 1

    def draw(self, call: Any, steps: int) -> None:
        self.bench.count("frozen", steps, lambda number: 2.0)
        if len(self.bench.calls["frozen"]) == self.fails_at:
            raise self.error


class FrozenWorkload(FakeWorkload):
    """A workload with a frozen reference."""

    frozen = FrozenSource(Path("nowhere"), ((1, 2),))


@pytest.fixture
def with_frozen(
    bench: TimedBench, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[FakeScenario, FakeProgram]]:
    """A scenario whose workload has a frozen reference, and the program that stands for it."""

    def make(name: str = "C", **options: Any) -> tuple[FakeScenario, FakeProgram]:
        program = FakeProgram(bench, **options)
        monkeypatch.setattr(timed_module, "frozen_program", lambda workload, device: program)
        scenario = bench.scenario(name, lambda number: CANDIDATE_S)
        return replace(scenario, workload=cast(Workload, FrozenWorkload())), program

    return make


WithFrozen = Callable[..., tuple[FakeScenario, FakeProgram]]
DOES_NOT_RUN = "the frozen reference does not run here (no kernel for this): there is nothing"


@pytest.mark.parametrize("name", ["C", "fp32"])
def test_with_a_frozen_reference_everything_is_timed_against_it_laid_out_anew_for_each_group(
    name: str, bench: TimedBench, with_frozen: WithFrozen
) -> None:
    scenario, program = with_frozen(name)
    assert rounds_of(scenario, bench) == ({2.0}, {CANDIDATE_S})
    assert program.relocated == 1, "it is new for the first group"
    assert bench.calls["frozen"] == [2, *[STEPS] * 3, 1, *[STEPS] * 3]
    assert bench.device.laid_out.count(None) == 2, "fillers come between"
    bench.device.warms_up = True
    reference_of(scenario, bench.device).place()
    assert bench.timed("frozen") == 6 + 2, "it settles where the device warms up"


@pytest.mark.parametrize(
    ("fails_at", "error", "outcome", "says"),
    [
        (1, NO_KERNEL, Outcome.NO_BASELINE, DOES_NOT_RUN),
        (3, NO_KERNEL, Outcome.NO_BASELINE, DOES_NOT_RUN),
        (1, MemoryError("injected"), Outcome.BROKEN, "ran out of memory on fake (injected)"),
    ],
    ids=["warm-up", "round", "no memory, which is no fault of the reference"],
)
def test_a_frozen_reference_that_fails_leaves_nothing_to_compare_with(
    fails_at: int,
    error: Exception,
    outcome: Outcome,
    says: str,
    bench: TimedBench,
    with_frozen: WithFrozen,
) -> None:
    scenario, _ = with_frozen(fails_at=fails_at, error=error)
    timed = reference_of(scenario, bench.device)
    with pytest.raises(ScenarioError) as caught:
        group(timed, placed=2)
    assert caught.value.outcome is outcome
    assert str(caught.value).startswith(f"fake-C: {says}")
