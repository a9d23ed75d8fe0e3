"""Paired rounds between two fake sides: their order, their placement, and what is disturbed."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

import pytest

from fixtures.measuring.control import VERSION
from fixtures.measuring.frozen.program import fingerprint
from fixtures.measuring.rounds import (
    DISTURBED_CAP,
    ROUNDS_S,
    Plan,
    Round,
    against,
    finished,
    paired_rounds,
    plan_of,
    timing_of,
)
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.records.timing import Evidence, Timing
from fixtures.scenarios import find_scenario
from fixtures.workloads.storybook import PIPELINE_FOLDER
from tests.support.fake_device import FakeDevice
from tests.support.fake_scenarios import STEPS, fake_scenario

REFERENCE_S = 1.0
CANDIDATE_S = 1.5
SCENARIO = fake_scenario(lambda: None)


class Side:
    """Something timed whose n-th round lasts `seconds(n)`, on the wall ten times as long.

    The rounds of the numbers in `hot` are disturbed. What is asked of it is kept in a log that two
    sides share.
    """

    def __init__(
        self,
        name: str,
        log: list[str],
        seconds: Callable[[int], float],
        hot: Collection[int] = (),
    ) -> None:
        self._name = name
        self._log = log
        self._seconds = seconds
        self._hot = hot
        self._rounds = 0

    def place(self) -> None:
        self._log.append(f"place {self._name}")

    def round(self) -> Round:
        self._log.append(self._name)
        self._rounds += 1
        judged_s = self._seconds(self._rounds)
        return Round(judged_s, 10 * judged_s, "it was hot" if self._rounds in self._hot else None)

    def evidence(self) -> Evidence:
        return Evidence(load=0.5, steal=0.0, cpu_share=1.0, device=f"seen by {self._name}")

    def close(self) -> None:
        self._log.append(f"close {self._name}")


def sides(
    log: list[str],
    *,
    reference: Callable[[int], float] = lambda number: REFERENCE_S,
    candidate: Callable[[int], float] = lambda number: CANDIDATE_S,
    hot_references: Collection[int] = (),
    hot_candidates: Collection[int] = (),
) -> tuple[Side, Side]:
    """The reference R and the candidate C."""
    return Side("R", log, reference, hot_references), Side("C", log, candidate, hot_candidates)


def timed(groups: int, pairs: int, both: tuple[Side, Side]) -> Timing:
    return finished(paired_rounds(SCENARIO, *both, Plan(groups, pairs)))


def test_each_candidate_round_stands_between_two_reference_rounds() -> None:
    log: list[str] = []
    timed(2, 2, sides(log))
    assert "".join(name for name in log if len(name) == 1) == "RCRCR" * 2


def test_both_are_placed_anew_for_each_group_and_neither_is_always_the_first() -> None:
    log: list[str] = []
    timed(3, 1, sides(log))
    assert log == [
        *("place R", "place C", "R", "C", "R"),
        *("place C", "place R", "R", "C", "R"),
        *("place R", "place C", "R", "C", "R"),
    ]


def test_another_placement_can_be_given() -> None:
    log: list[str] = []
    rounds = paired_rounds(
        SCENARIO, *sides(log), Plan(2, 1), place=lambda reference, candidate: log.append("both")
    )
    finished(rounds)
    assert log == ["both", "R", "C", "R"] * 2


def test_neither_side_is_closed() -> None:
    log: list[str] = []
    timed(1, 1, sides(log))
    assert not any(entry.startswith("close") for entry in log)


def test_the_timing_holds_both_clocks_and_the_candidate_s_evidence() -> None:
    timing = timed(2, 2, sides([]))
    for group in timing.groups:
        assert group.reference_s == (REFERENCE_S,) * 3
        assert group.candidate_s == (CANDIDATE_S,) * 2
        assert group.disturbed == ()
    assert timing.wall_s == (10 * CANDIDATE_S,) * 4
    assert timing.judged_ms == 1000 * CANDIDATE_S
    assert timing.evidence.device == "seen by C"


def test_drift_of_the_machine_cancels() -> None:
    drift = 1.05
    timing = timed(
        1,
        3,
        sides(
            [],
            reference=lambda number: REFERENCE_S * drift ** (2 * number),
            candidate=lambda number: CANDIDATE_S * drift ** (2 * number + 1),
        ),
    )
    assert timing.sample.log_ratio == pytest.approx(math.log(CANDIDATE_S / REFERENCE_S))


def test_the_consumer_runs_the_candidate_s_rounds_and_nothing_else() -> None:
    log: list[str] = []
    rounds = paired_rounds(SCENARIO, *sides(log), Plan(1, 2))
    first = next(rounds)
    assert log == ["place R", "place C", "R"]
    first()
    assert log[3:] == ["C"]
    next(rounds)()
    assert log[4:] == ["R", "C"]
    with pytest.raises(StopIteration):
        next(rounds)
    assert log[6:] == ["R"]


# On one core


class Core:
    """A core that two sides share evenly, and whose speed changes with time."""

    def __init__(self, speed: Callable[[float], float] = lambda now_s: 1.0) -> None:
        self.now_s = 100.0
        self.speed = speed

    def run(self, work_s: float) -> Round:
        """Half of the core until the work is done, in slices of a millisecond."""
        start_s, judged_s = self.now_s, 0.0
        while work_s > 0:
            slice_s = min(0.001, work_s / self.speed(self.now_s))
            work_s -= slice_s * self.speed(self.now_s)
            judged_s += slice_s
            self.now_s += 2 * slice_s
        return Round(judged_s, self.now_s - start_s, None, self.now_s)


class SharedCandidate(Side):
    """A candidate on a core that it shares."""

    def __init__(self, log: list[str], core: Core, work_s: float = CANDIDATE_S) -> None:
        super().__init__("C", log, lambda number: work_s)
        self._core = core
        self._work_s = work_s

    def round(self) -> Round:
        self._log.append("C")
        return self._core.run(self._work_s)


class BesideIt:
    """A reference that has run all the while, as seen from when it is stopped."""

    def __init__(self, log: list[str], core: Core, work_s: float = 0.3) -> None:
        self._log = log
        self._core = core
        self._work_s = work_s
        self._started_s = 0.0

    def place(self) -> None:
        self._log.append("place R")

    def start(self) -> None:
        self._log.append("start R")
        # It is in the middle of a call when the candidate begins.
        self._started_s = self._core.now_s - 0.1

    def stop(self) -> list[Round]:
        self._log.append("stop R")
        until_s, self._core.now_s = self._core.now_s, self._started_s
        calls = []
        while self._core.now_s < until_s:
            calls.append(self._core.run(self._work_s))
        return calls

    def close(self) -> None:
        self._log.append("close R")


def beside(core: Core, log: list[str] | None = None, groups: int = 2, pairs: int = 2) -> Timing:
    log = [] if log is None else log
    candidate = SharedCandidate(log, core)
    rounds = paired_rounds(SCENARIO, BesideIt(log, core), candidate, Plan(groups, pairs))
    return finished(rounds)


def test_the_reference_runs_from_before_the_first_round_of_a_group_until_after_the_last() -> None:
    log: list[str] = []
    beside(Core(), log)
    group = ["place C", "place R"], ["start R", "C", "C", "stop R"]
    for start in (0, 6):
        assert sorted(log[start : start + 2]) == group[0]  # At once, in either order.
        assert log[start + 2 : start + 6] == group[1]
    assert len(log) == 12


def test_each_round_is_compared_with_the_calls_that_ran_beside_it() -> None:
    timing = beside(Core())
    for group in timing.groups:
        assert group.reference_s == pytest.approx((0.3, 0.3))
        assert group.candidate_s == pytest.approx((CANDIDATE_S, CANDIDATE_S))
    assert timing.sample.log_ratio == pytest.approx(math.log(CANDIDATE_S / 0.3))


def test_the_time_shown_is_the_candidate_s_own_and_the_share_is_that_of_both() -> None:
    timing = beside(Core())
    assert timing.wall_s == pytest.approx((CANDIDATE_S,) * 4)
    assert timing.evidence.cpu_share == pytest.approx(1.0, abs=0.01)
    assert timing.evidence.device == "seen by C"


@pytest.mark.parametrize("period_s", [0.05, 0.7, 5.0])
def test_what_slows_the_core_down_slows_both(period_s: float) -> None:
    """Twice as slow for half of the time: alternating rounds would differ by a factor of two."""
    core = Core(lambda now_s: 1.0 if now_s % period_s < period_s / 2 else 0.5)
    timing = beside(core, groups=8)
    assert timing.sample.log_ratio == pytest.approx(math.log(CANDIDATE_S / 0.3), abs=0.05)


def test_a_core_that_others_use_shows_in_the_share() -> None:
    class Busy(Core):
        def run(self, work_s: float) -> Round:
            done = super().run(work_s)
            self.now_s += done.wall_s  # Half of the time somebody else had the core.
            return Round(done.judged_s, 2 * done.wall_s, None, self.now_s)

    assert beside(Busy()).evidence.cpu_share == pytest.approx(0.5, abs=0.02)


def test_a_reference_that_did_not_run_beside_is_an_error() -> None:
    class Idle(BesideIt):
        def stop(self) -> list[Round]:
            return []

    rounds = paired_rounds(
        SCENARIO, Idle([], Core()), SharedCandidate([], Core()), Plan(groups=1, pairs=1)
    )
    with pytest.raises(RuntimeError, match="did not run beside"):
        finished(rounds)


# Disturbed rounds


def test_a_disturbed_candidate_round_is_kept_and_does_not_count() -> None:
    timing = timed(
        2,
        2,
        sides(
            [],
            candidate=lambda number: CANDIDATE_S * (9 if number == 3 else 1),
            hot_candidates=[3],
        ),
    )
    assert [group.disturbed for group in timing.groups] == [(), (True, False)]
    assert timing.groups[1].candidate_s == (9 * CANDIDATE_S, CANDIDATE_S)
    assert timing.sample.log_ratio == pytest.approx(math.log(CANDIDATE_S / REFERENCE_S))


@pytest.mark.parametrize(
    ("hot", "disturbed"),
    [(1, (True, False, False)), (2, (True, True, False)), (4, (False, False, True))],
    ids=["first", "between", "last"],
)
def test_a_disturbed_reference_round_spoils_the_pairs_beside_it(
    hot: int, disturbed: tuple[bool, ...]
) -> None:
    timing = timed(3, 3, sides([], hot_references=[hot]))
    assert [group.disturbed for group in timing.groups] == [disturbed, (), ()]


def test_as_many_disturbed_rounds_as_the_cap_are_left_out_and_one_more_is_no_latency() -> None:
    plan = Plan(groups=4, pairs=2)
    cap = int(DISTURBED_CAP * plan.rounds)
    timing = timed(plan.groups, plan.pairs, sides([], hot_candidates=range(1, cap + 1)))
    assert sum(sum(group.disturbed) for group in timing.groups) == cap
    with pytest.raises(ScenarioError) as caught:
        timed(plan.groups, plan.pairs, sides([], hot_candidates=range(1, cap + 2)))
    assert caught.value.scenario == SCENARIO.id
    assert caught.value.outcome is Outcome.INCONCLUSIVE
    assert caught.value.reason.startswith(f"{cap + 1} of 8 rounds were disturbed (it was hot); ")


def test_the_commonest_reason_is_named() -> None:
    class Mixed(Side):
        def round(self) -> Round:
            done = super().round()
            why = "it was hot" if self._rounds == 1 else "another process ran"
            return Round(done.judged_s, done.wall_s, why)

    reference, _ = sides([])
    with pytest.raises(
        ScenarioError, match=r"3 of 3 rounds were disturbed \(another process ran\)"
    ):
        timed(1, 3, (reference, Mixed("C", [], lambda number: CANDIDATE_S)))


# Plans


def test_a_slow_call_gets_fewer_groups_but_at_least_two() -> None:
    plan = Plan()
    assert Plan.for_call(0.0) == Plan.for_call(0.1) == plan
    assert Plan.for_call(12.0) == Plan(groups=2, pairs=plan.pairs)
    middling = Plan.for_call(1.0)
    assert 2 < middling.groups < plan.groups
    assert middling.groups * (2 * middling.pairs + 1) * 1.0 <= ROUNDS_S


def test_a_plan_is_for_the_timed_call_which_may_take_fewer_steps_than_the_observed_one() -> None:
    scenario = find_scenario("storybook", "sdpa")
    workload = scenario.workload
    assert workload.steps_of_timed_call < workload.call.steps
    share = workload.steps_of_timed_call / workload.call.steps
    assert plan_of(scenario, 2.0) == Plan.for_call(2.0 * share) != Plan.for_call(2.0)


def test_what_skips_steps_is_planned_and_recorded_with_all_of_them() -> None:
    scenario = find_scenario("storybook", "deep_cache")
    assert plan_of(scenario, 2.0) == Plan.for_call(2.0)
    assert timing_of(scenario, FakeDevice())["steps"] == scenario.workload.call.steps == 20


def test_a_ratio_is_of_so_many_steps_and_without_a_frozen_reference_fp32_s_of_the_control() -> None:
    reference = fake_scenario(lambda: None, name="fp32")
    device = FakeDevice()
    assert timing_of(SCENARIO, device) == {"steps": STEPS}
    assert timing_of(reference, device) == {"steps": STEPS, "control": VERSION}
    shared = timing_of(SCENARIO, FakeDevice(shares_core=True))
    assert shared == {"steps": STEPS, "rounds": "on one core"}
    kept = timing_of(SCENARIO, FakeDevice(keeps_memory=True))
    assert kept == {"steps": STEPS, "freed memory": "kept"}
    assert (against(SCENARIO), against(reference)) == ("fp32", "the control workload")


@pytest.mark.parametrize("technique", ["fp32", "sdpa"])
def test_a_ratio_to_the_frozen_reference_is_of_that_program_with_those_weights(
    technique: str,
) -> None:
    scenario = find_scenario("storybook", technique)
    stated = {"steps": 3, "frozen reference": fingerprint(PIPELINE_FOLDER)}
    assert timing_of(scenario, FakeDevice()) == stated
    assert against(scenario) == "the frozen reference"
    own_weights = find_scenario("storybook", technique, "my/pipeline")
    assert "frozen reference" not in timing_of(own_weights, FakeDevice())
    assert against(own_weights) == ("the control workload" if technique == "fp32" else "fp32")
