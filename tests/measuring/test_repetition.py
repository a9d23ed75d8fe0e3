"""How often a latency is sampled: while undecided, as often as stated, within the budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from fixtures.measuring.repetition import (
    SCENARIO_S,
    RoundRobin,
    SampleBudget,
    fixed,
    noise,
    round_robin,
    until_decided,
)
from fixtures.records.outcome import Outcome, ScenarioError, Verdict
from fixtures.records.timing import Evidence, Timing
from fixtures.metrics.latency import MAX_SAMPLES
from tests.support.runs import timing

SAMPLE_S = 10.0
AMPLE = 1e9


class Bench:
    """A fake clock that each sample moves, and a judge that decides at the n-th sample."""

    def __init__(
        self, decided_at: int, outcome: Outcome = Outcome.PASS, sample_s: float = SAMPLE_S
    ) -> None:
        self.now_s = 0.0
        self.told: list[int] = []
        self._decided_at = decided_at
        self._outcome = outcome
        self._sample_s = sample_s

    def take(self, before: Sequence[Timing]) -> Timing:
        self.told.append(len(before))
        self.now_s += self._sample_s
        return timing()

    def judge(self, timings: Sequence[Timing]) -> list[Verdict]:
        decided = len(timings) >= self._decided_at
        return [judged(self._outcome if decided else Outcome.INCONCLUSIVE)]

    def run(self, budget_s: float | SampleBudget) -> tuple[list[Timing], Verdict]:
        budget = budget_s if isinstance(budget_s, SampleBudget) else SampleBudget(budget_s)
        timings, [verdict] = until_decided(self.take, self.judge, budget, lambda: self.now_s)
        return timings, verdict


def judged(outcome: Outcome) -> Verdict:
    """A verdict that says this."""
    return Verdict("s", "m", outcome, "so it is")


# Round robin


def test_samples_are_taken_round_robin_when_the_first_is_asked_for() -> None:
    log: list[str] = []

    def sample(one: str, before: Sequence[Timing]) -> Timing:
        log.append(f"{one}{len(before)}")
        return timing(1 + len(before) / 10)

    samples = RoundRobin(sample, ["a", "b"], 3)
    assert log == []
    taken: list[Timing] = []
    for _ in range(3):
        taken.append(samples.take("b", taken))
    assert log == ["a0", "b0", "a1", "b1", "a2", "b2"]
    assert taken == [timing(1.0), timing(1.1), timing(1.2)]
    assert samples.take("a", taken[:2]) == timing(1.2)
    assert len(log) == 6
    samples.take("c", taken)
    assert log[6:] == ["c3"]


def test_what_fails_is_sampled_no_more_and_raised_where_it_is_asked_for() -> None:
    log: list[str] = []

    def sample(one: str, before: Sequence[Timing]) -> Timing:
        log.append(one)
        if one == "a" and before:
            raise ScenarioError("a", Outcome.BROKEN, "it broke")
        return timing()

    samples = RoundRobin(sample, ["a", "b"], 3)
    assert samples.take("b", [timing(), timing()]) == timing()
    assert log == ["a", "b", "a", "b", "b"]
    for _ in range(2):
        with pytest.raises(ScenarioError, match="it broke"):
            samples.take("a", [])


# Until decided


@pytest.mark.parametrize("outcome", [one for one in Outcome if one is not Outcome.INCONCLUSIVE])
def test_a_decided_first_sample_is_final_whatever_it_says(outcome: Outcome) -> None:
    bench = Bench(1, outcome)
    timings, verdict = bench.run(AMPLE)
    assert (len(timings), bench.told, verdict.outcome) == (1, [0], outcome)


def test_samples_are_taken_until_it_is_decided_and_each_is_told_of_those_before() -> None:
    bench = Bench(decided_at=4)
    timings, verdict = bench.run(AMPLE)
    assert (len(timings), bench.told, verdict.outcome) == (4, [0, 1, 2, 3], Outcome.PASS)


def test_there_are_never_more_samples_than_the_error_rate_counts_with() -> None:
    timings, verdict = Bench(MAX_SAMPLES + 1).run(AMPLE)
    assert len(timings) == MAX_SAMPLES
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert Bench(MAX_SAMPLES).run(AMPLE)[1].outcome is Outcome.PASS


def test_the_budget_is_spent_by_further_samples_and_shared_by_scenarios() -> None:
    budget = SampleBudget(2.5 * SAMPLE_S)
    assert len(Bench(99).run(budget)[0]) == 3
    assert budget.left_s == 0.5 * SAMPLE_S
    assert len(Bench(99).run(budget)[0]) == 1


@pytest.mark.parametrize(("budget_s", "samples"), [(0.0, 1), (SAMPLE_S - 1, 1), (SAMPLE_S, 2)])
def test_a_budget_allows_what_fits_and_no_more(budget_s: float, samples: int) -> None:
    timings, verdict = Bench(99).run(budget_s)
    assert len(timings) == samples
    assert verdict.outcome is Outcome.INCONCLUSIVE


def test_one_scenario_does_not_take_the_time_of_the_others() -> None:
    timings, verdict = Bench(99, sample_s=40.0).run(AMPLE)
    assert len(timings) == SCENARIO_S // 40 < MAX_SAMPLES
    assert verdict.sentence.endswith("run on a quieter machine")


def test_a_sample_that_fails_ends_it() -> None:
    def take(before: Sequence[Timing]) -> Timing:
        if before:
            raise ScenarioError("s", Outcome.BROKEN, "its process ended with code 1")
        return timing()

    with pytest.raises(ScenarioError, match="ended with code 1"):
        until_decided(take, Bench(2).judge, SampleBudget(AMPLE))


@pytest.mark.parametrize(("decided_at", "named"), [(99, True), (1, False), (2, False)])
def test_only_an_undecided_verdict_names_the_noise(decided_at: int, named: bool) -> None:
    _, verdict = Bench(decided_at).run(25.0)
    assert (verdict.outcome is Outcome.INCONCLUSIVE) is named
    assert verdict.sentence.startswith("so it is")
    assert ("undecided because of" in verdict.sentence) is named


@pytest.mark.parametrize(
    ("first", "samples"),
    [
        ((Outcome.PASS, Outcome.PASS), 1),
        ((Outcome.PASS, Outcome.INCONCLUSIVE), 2),
        ((Outcome.INCONCLUSIVE, Outcome.NOT_JUDGED), 2),
        ((Outcome.INCONCLUSIVE, Outcome.REGRESSION), 1),
        ((Outcome.NO_BASELINE, Outcome.INCONCLUSIVE), 1),
    ],
)
def test_of_several_verdicts_any_may_ask_for_more_unless_one_has_failed(
    first: tuple[Outcome, Outcome], samples: int
) -> None:
    def judge(timings: Sequence[Timing]) -> list[Verdict]:
        outcomes = first if len(timings) == 1 else (Outcome.PASS, Outcome.PASS)
        return [judged(outcome) for outcome in outcomes]

    bench = Bench(1)
    timings, verdicts = until_decided(bench.take, judge, SampleBudget(AMPLE), lambda: bench.now_s)
    assert len(timings) == samples
    for verdict, outcome in zip(verdicts, first, strict=True):
        assert verdict.outcome is (outcome if samples == 1 else Outcome.PASS)
        undecided = verdict.outcome is Outcome.INCONCLUSIVE
        assert ("undecided because of" in verdict.sentence) is undecided


# Fixed, and round robin


@pytest.mark.parametrize("count", [0, 1, 10])
def test_so_many_timings_are_taken(count: int) -> None:
    bench = Bench(1)
    assert len(fixed(bench.take, count)) == count
    assert bench.told == list(range(count))


def sampled_in_turn(
    before: dict[str, int], most: int, room: int = 99, fails: str = ""
) -> tuple[list[str], dict[str, int]]:
    """The order in which these are sampled, with room for so many, and what each has in the end."""
    taken, order = Counter(before), list[str]()
    for one in round_robin(
        list(before), taken.__getitem__, most, fits=lambda one: len(order) < room
    ):
        order.append(one)
        taken[one] += one != fails
    return order, dict(taken)


def test_every_one_is_sampled_in_turn_until_each_has_enough() -> None:
    order, taken = sampled_in_turn({"a": 1, "b": 1}, 3)
    assert order == ["a", "b", "a", "b"]
    assert taken == {"a": 3, "b": 3}


def test_those_with_the_fewest_come_first() -> None:
    order, taken = sampled_in_turn({"a": 2, "b": 1}, 3)
    assert order == ["b", "a", "b"]
    assert taken == {"a": 3, "b": 3}


def test_what_has_none_or_enough_takes_no_part() -> None:
    assert sampled_in_turn({"a": 0, "b": 3, "c": 5}, 3)[0] == []


def test_the_rest_is_left_where_there_is_no_more_time() -> None:
    order, taken = sampled_in_turn({"a": 1, "b": 1}, 9, room=3)
    assert order == ["a", "b", "a"]
    assert taken == {"a": 3, "b": 2}


def test_what_fails_is_not_tried_for_ever() -> None:
    order, taken = sampled_in_turn({"a": 1, "b": 1}, 4, fails="b")
    assert order.count("b") == 1
    assert taken == {"a": 4, "b": 1}


# Noise has a name


QUIET = Evidence(load=0.3, steal=0.0, cpu_share=0.99)


def undecided(*evidence: Evidence, ratios: Sequence[float] = (1.0, 1.0)) -> str:
    """What is said of processes that saw these ratios under this evidence."""
    found = [
        replace(timing(ratio), evidence=one) for ratio, one in zip(ratios, evidence, strict=True)
    ]
    return noise(found, sample_s=12.0)


def test_other_processes_are_named_with_load_and_share() -> None:
    said = undecided(QUIET, Evidence(load=4.5, steal=0.0, cpu_share=0.52))
    assert "other processes (load 4.5 on" in said
    assert "this one ran 52 % of the time" in said


def test_other_guests_are_named_with_their_steal() -> None:
    assert "other guests (steal 7 %)" in undecided(QUIET, Evidence(0.3, 0.07, 0.99))


def test_processes_that_differ_are_named_with_their_spread() -> None:
    assert "processes that differ by 14.1 %" in undecided(QUIET, QUIET, ratios=(0.905, 1.105))


def test_several_causes_are_all_named() -> None:
    said = undecided(QUIET, Evidence(load=4.5, steal=0.07, cpu_share=0.52))
    assert said.index("other processes") < said.index(" and other guests")
    assert "too few" not in said


@pytest.mark.parametrize(
    ("taken", "allowed"),
    [(2, f"up to {MAX_SAMPLES - 2} samples"), (MAX_SAMPLES - 1, "1 sample")],
)
def test_too_few_processes_are_named_where_nothing_disturbed(taken: int, allowed: str) -> None:
    said = undecided(*[QUIET] * taken, ratios=[1.0] * taken)
    assert said.startswith("undecided because of nothing but too few processes; ")
    assert f"allow {allowed} more: --perf-budget {12 * (MAX_SAMPLES - taken)}" in said


def test_after_the_last_sample_only_a_quieter_machine_helps() -> None:
    said = undecided(*[QUIET] * MAX_SAMPLES, ratios=[1.0] * MAX_SAMPLES)
    assert said.endswith("run on a quieter machine")
