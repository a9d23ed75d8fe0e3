"""Paired rounds, on a fake clock: what is timed, in which order, and what is not timed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fixtures.devices import Undisturbed
from fixtures.measurement import ScenarioError
from fixtures.placing import MOST_SETTLING
from fixtures.rounds import ROUNDS_S, PairedRounds, Plan
from fixtures.scenarios import Scenario
from fixtures.techniques.registry import CATALOGUE, Technique
from fixtures.verdicts import Outcome

REFERENCE_S = 1.0
CANDIDATE_S = 1.5
BUILD_S = 100.0


class FakeDevice:
    """A device whose clock moves only when work is done on it."""

    name = key = "fake"
    warms_up = False

    def __init__(self) -> None:
        self.now_s = 0.0
        self.synchronised = 0
        self.released = 0
        self.relocated: list[str] = []
        self.watching: Any = Undisturbed()

    def busy_s(self) -> float:
        return self.now_s

    def synchronize(self) -> None:
        self.synchronised += 1

    def release(self) -> None:
        self.released += 1

    def watch(self) -> Any:
        return self.watching

    def relocate(self, pipeline: tuple[str, float]) -> None:
        self.now_s += BUILD_S
        self.relocated.append(pipeline[0])


class FakeWorkload:
    """Draws by letting the clock run, and writes down who drew."""

    name = "fake"
    weights = ""

    def __init__(self, device: FakeDevice) -> None:
        self.device = device
        self.log: list[str] = []
        self.drift = 1.0

    def draw(self, pipeline: tuple[str, float], steps: int | None = None) -> None:
        name, seconds = pipeline
        self.device.now_s += 7.0 if steps else seconds * self.drift
        self.log.append(name.lower() if steps else name)

    def draw_timed(self, pipeline: tuple[str, float]) -> None:
        self.draw(pipeline)


def _scenario(workload: FakeWorkload, candidate_s: float = CANDIDATE_S) -> Scenario:
    def technique(name: str, seconds: float) -> Technique:
        def apply(work: FakeWorkload, device: FakeDevice) -> Iterator[Any]:
            device.now_s += BUILD_S
            work.log.append(f"build {name}")
            yield (name, seconds)
            work.log.append(f"leave {name}")

        base = CATALOGUE["fp16"]
        return Technique(
            id=name,
            help="",
            family=base.family,
            document="",
            apply=apply,  # type: ignore[arg-type]
            proof=base.proof,
            min_ssim_by_workload={"": 1.0},
        )

    class FakeScenario(Scenario):
        @property
        def reference(self) -> Scenario:
            return Scenario(self.workload, technique("R", REFERENCE_S))

    return FakeScenario(workload, technique("C", candidate_s))  # type: ignore[arg-type]


@pytest.fixture
def device() -> FakeDevice:
    return FakeDevice()


@pytest.fixture
def workload(device: FakeDevice) -> FakeWorkload:
    return FakeWorkload(device)


def _rounds(workload: FakeWorkload, plan: Plan, **options: Any) -> PairedRounds:
    return PairedRounds(_scenario(workload), workload.device, plan, **options)  # type: ignore[arg-type]


def test_each_candidate_round_stands_between_two_reference_rounds(workload: FakeWorkload) -> None:
    _rounds(workload, Plan(groups=2, pairs=2)).run()
    drawn = "".join(name for name in workload.log if name in ("R", "C"))
    assert drawn == "RCRCR" * 2


def test_every_group_lies_elsewhere_and_neither_is_always_placed_first(
    workload: FakeWorkload, device: FakeDevice
) -> None:
    _rounds(workload, Plan(groups=3, pairs=1)).run()
    assert device.relocated == ["R", "C", "C", "R", "R", "C"]
    assert "".join(name for name in workload.log if len(name) == 1) == "rcRCR" * 3


def test_pipelines_are_built_once_and_left(workload: FakeWorkload) -> None:
    _rounds(workload, Plan(groups=3, pairs=1)).run()
    for name in ("R", "C"):
        assert workload.log.count(f"build {name}") == workload.log.count(f"leave {name}") == 1


def test_building_and_warming_up_are_not_timed(workload: FakeWorkload) -> None:
    timing = _rounds(workload, Plan(groups=2, pairs=2)).run()
    for group in timing.groups:
        assert group.reference_s == (REFERENCE_S,) * 3
        assert group.candidate_s == (CANDIDATE_S,) * 2
    assert timing.busy_ms == CANDIDATE_S * 1000


def test_drift_of_the_machine_cancels(workload: FakeWorkload) -> None:
    class Drifting(FakeWorkload):
        def draw(self, pipeline: tuple[str, float], steps: int | None = None) -> None:
            self.drift *= 1.05
            super().draw(pipeline, steps)

    timing = _rounds(Drifting(workload.device), Plan(groups=1, pairs=3)).run()
    assert timing.look.log_ratio == pytest.approx(0.405465, abs=1e-6)  # log(1.5)


def test_both_ends_of_a_round_are_synchronised(workload: FakeWorkload, device: FakeDevice) -> None:
    _rounds(workload, Plan(groups=1, pairs=2)).run()
    assert device.synchronised == 2 * len([name for name in workload.log if name in ("R", "C")])


@pytest.mark.parametrize(
    ("gains", "calls"),
    [((1.0,), 2), ((1.5, 1.2, 1.0), 4), ((0.5,) * 99, 1 + MOST_SETTLING)],
    ids=["at once", "in the end", "never"],
)
def test_a_device_that_warms_up_is_called_until_it_is_stable(
    gains: tuple[float, ...], calls: int, device: FakeDevice
) -> None:
    class Warming(FakeWorkload):
        def draw(self, pipeline: tuple[str, float], steps: int | None = None) -> None:
            place = self.log.count(pipeline[0])
            self.drift = gains[place] if place < len(gains) and len(gains) < 99 else 1.0
            if len(gains) == 99:
                self.drift = 0.5**place
            super().draw(pipeline, steps)

    device.warms_up = True
    workload = Warming(device)
    rounds = _rounds(workload, Plan(groups=1, pairs=1))
    rounds.before_round()
    drawn = [name for name in workload.log if name in ("R", "C")]
    assert drawn == ["R"] * calls + ["C"] * calls + ["R"]


class Disturbed:
    """Says that rounds of these numbers were disturbed."""

    def __init__(self, *numbers: int) -> None:
        self._numbers = numbers
        self._round = 0

    def disturbance(self) -> str | None:
        self._round += 1
        return "it was hot" if self._round in self._numbers else None

    def sentence(self) -> str:
        return "at most 90 °C"


def test_a_disturbed_round_does_not_count_and_is_kept(workload: FakeWorkload) -> None:
    class Slower(FakeWorkload):
        def draw(self, pipeline: tuple[str, float], steps: int | None = None) -> None:
            self.drift = 9.0 if self.log.count("C") == 2 and pipeline[0] == "C" else 1.0
            super().draw(pipeline, steps)

    slower = Slower(workload.device)
    slower.device.watching = Disturbed(3)
    timing = _rounds(slower, Plan(groups=2, pairs=2)).run()
    assert [group.disturbed for group in timing.groups] == [(), (True, False)]
    assert timing.groups[1].candidate_s == (9 * CANDIDATE_S, CANDIDATE_S)
    assert len(timing.groups[1].log_ratios()) == 1
    assert timing.look.log_ratio == pytest.approx(0.405465, abs=1e-6)
    assert timing.evidence.sentence().endswith("; at most 90 °C")


def test_too_many_disturbed_rounds_are_no_latency(workload: FakeWorkload) -> None:
    workload.device.watching = Disturbed(1, 4)
    with pytest.raises(ScenarioError) as caught:
        _rounds(workload, Plan(groups=2, pairs=2)).run()
    assert caught.value.outcome is Outcome.INCONCLUSIVE
    assert "fake-C: 2 of 4 rounds on fake were disturbed (it was hot)" in str(caught.value)


def test_progress_counts_the_rounds(workload: FakeWorkload) -> None:
    seen: list[tuple[int, int]] = []
    _rounds(
        workload, Plan(groups=2, pairs=1), progress=lambda done, of: seen.append((done, of))
    ).run()
    assert seen == [(1, 2), (2, 2)]


def test_a_round_that_raises_is_a_broken_scenario_and_leaves_nothing_built(
    workload: FakeWorkload, device: FakeDevice
) -> None:
    class Failing(FakeWorkload):
        def draw(self, pipeline: tuple[str, float], steps: int | None = None) -> None:
            if pipeline[0] == "C" and steps is None:
                raise MemoryError("injected")
            super().draw(pipeline, steps)

    failing = Failing(device)
    with pytest.raises(ScenarioError, match="fake-C: ran out of memory on fake") as caught:
        _rounds(failing, Plan()).run()
    assert caught.value.outcome is Outcome.BROKEN
    assert failing.log.count("leave C") == failing.log.count("leave R") == 1
    assert device.released > 0


def test_a_slow_call_gets_fewer_groups_but_at_least_two() -> None:
    plan = Plan()
    assert Plan.for_call(0.0) == Plan.for_call(0.1) == plan
    assert Plan.for_call(12.0) == Plan(groups=2, pairs=plan.pairs)
    middling = Plan.for_call(1.0)
    assert 2 < middling.groups < plan.groups
    assert middling.groups * (2 * middling.pairs + 1) * 1.0 <= ROUNDS_S
