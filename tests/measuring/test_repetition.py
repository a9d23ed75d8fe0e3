"""Looking again: only while undecided, never more often than stated, never beyond the budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from fixtures.looks import SCENARIO_S, LookBudget, look_until_decided, noise
from fixtures.machine import Evidence
from fixtures.rounds import Timing
from fixtures.statistics import Group, Look
from fixtures.verdicts import MAX_LOOKS, Outcome, Verdict
from tests.records import timing

LOOK_S = 10.0


def _timing() -> Timing:
    return Timing((Group((1.0, 1.0), (1.5,)),), (1.5,), 1500.0, Evidence(0.0, 0.0, 1.0))


class _Bench:
    """A fake clock that a look moves by `LOOK_S`, and a judge that decides at the n-th look."""

    def __init__(self, decided_at: int, outcome: Outcome = Outcome.PASS) -> None:
        self.now_s = 0.0
        self.fresh = 0
        self.told: list[int] = []
        self.look_s = LOOK_S
        self._decided_at = decided_at
        self._outcome = outcome

    def first(self) -> Timing:
        self.now_s += self.look_s
        return _timing()

    def further(self, before: Sequence[Timing]) -> Timing:
        self.told.append(len(before))
        self.fresh += 1
        return self.first()

    def judge(self, looks: Sequence[Look]) -> Verdict:
        decided = len(looks) >= self._decided_at
        return Verdict("s", "m", self._outcome if decided else Outcome.INCONCLUSIVE, "")

    def run(self, budget: LookBudget) -> tuple[list[Timing], Verdict]:
        clock: Callable[[], float] = lambda: self.now_s  # noqa: E731
        return look_until_decided(self.first, self.further, self.judge, budget, clock)


def _outcomes() -> Iterator[Outcome]:
    yield from (Outcome.PASS, Outcome.REGRESSION, Outcome.IMPROVEMENT, Outcome.NO_BASELINE)


def test_a_decided_first_look_is_final_whatever_it_says() -> None:
    for outcome in _outcomes():
        bench = _Bench(1, outcome)
        timings, verdict = bench.run(LookBudget(1000.0))
        assert (len(timings), bench.fresh, verdict.outcome) == (1, 0, outcome)


def test_fresh_processes_look_until_it_is_decided() -> None:
    bench = _Bench(3)
    timings, verdict = bench.run(LookBudget(1000.0))
    assert (len(timings), bench.fresh, verdict.outcome) == (3, 2, Outcome.PASS)


def test_there_are_never_more_looks_than_the_error_rate_counts_with() -> None:
    timings, verdict = _Bench(99).run(LookBudget(1000.0))
    assert len(timings) == MAX_LOOKS
    assert verdict.outcome is Outcome.INCONCLUSIVE


def test_the_budget_is_spent_by_fresh_looks_and_shared_between_scenarios() -> None:
    budget = LookBudget(2.5 * LOOK_S)
    assert len(_Bench(99).run(budget)[0]) == 3
    assert budget.left_s == 0.5 * LOOK_S
    assert len(_Bench(99).run(budget)[0]) == 1


def test_one_scenario_does_not_take_the_time_of_the_others() -> None:
    bench = _Bench(99)
    assert len(bench.run(LookBudget(1e9))[0]) == MAX_LOOKS
    slow = _Bench(99)
    slow.look_s = 40.0
    timings, verdict = slow.run(LookBudget(1e9))
    assert len(timings) == SCENARIO_S // 40
    assert verdict.sentence.endswith("run on a quieter machine")


def test_a_budget_of_zero_allows_no_further_look() -> None:
    timings, verdict = _Bench(2).run(LookBudget(0.0))
    assert len(timings) == 1
    assert verdict.outcome is Outcome.INCONCLUSIVE


# Noise has a name


def undecided(*evidence: Evidence, ratios: Sequence[float] = (1.0, 1.0)) -> str:
    """What is said of processes that saw these ratios under this evidence."""
    found = [
        replace(timing(ratio), evidence=one) for ratio, one in zip(ratios, evidence, strict=True)
    ]
    return noise(found, look_s=12.0)


QUIET = Evidence(load=0.3, steal=0.0, cpu_share=0.99)


def test_other_processes_are_named_with_load_and_share() -> None:
    said = undecided(QUIET, Evidence(load=4.5, steal=0.0, cpu_share=0.52))
    assert "other processes (load 4.5 on" in said
    assert "this one ran 52 % of the time" in said


def test_other_guests_are_named_with_their_steal() -> None:
    assert "other guests (steal 7 %)" in undecided(QUIET, Evidence(0.3, 0.07, 0.99))


def test_processes_that_differ_are_named_with_their_spread() -> None:
    assert "processes that differ by 14.1 %" in undecided(QUIET, QUIET, ratios=(0.905, 1.105))


def test_too_few_processes_are_named_where_nothing_disturbed() -> None:
    said = undecided(QUIET, QUIET)
    assert "too few processes" in said
    assert f"allow up to {MAX_LOOKS - 2} looks more: --perf-budget {12 * (MAX_LOOKS - 2)}" in said


def test_after_the_last_look_only_a_quieter_machine_helps() -> None:
    said = undecided(*[QUIET] * MAX_LOOKS, ratios=[1.0] * MAX_LOOKS)
    assert said.endswith("run on a quieter machine")


@pytest.mark.parametrize(("decided_at", "named"), [(99, True), (1, False)])
def test_only_an_undecided_verdict_carries_the_name(decided_at: int, named: bool) -> None:
    bench = _Bench(decided_at)
    _, verdict = look_until_decided(
        bench.first, bench.further, bench.judge, LookBudget(25.0), lambda: bench.now_s
    )
    assert (verdict.outcome is Outcome.INCONCLUSIVE) is named
    assert ("undecided for" in verdict.sentence) is named


def test_a_further_look_is_told_what_was_seen_so_far() -> None:
    bench = _Bench(decided_at=4)
    look_until_decided(
        bench.first, bench.further, bench.judge, LookBudget(1000.0), lambda: bench.now_s
    )
    assert bench.told == [1, 2, 3]
