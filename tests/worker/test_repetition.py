"""How often a latency is sampled: while undecided, as often as stated, within the budget."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

import psutil
import pytest

from fixtures.records.outcome import Outcome, ScenarioError, Verdict
from fixtures.records.timing import Timing
from fixtures.verdicts.statistics import MAX_SAMPLES
from fixtures.worker.sampling import SCENARIO_S, SampleBudget, noise, until_decided
from tests.support.runs import timing

SAMPLE_S = 10.0
AMPLE = 1e9
NEVER = 99


class Bench:
    """A fake clock that each sample moves, and a judge that decides at the n-th sample."""

    def __init__(self, decided_at: int, sample_s: float = SAMPLE_S) -> None:
        self.now_s = 0.0
        self._decided_at = decided_at
        self._sample_s = sample_s

    def samples(self) -> Iterator[Timing]:
        while True:
            self.now_s += self._sample_s
            yield timing()

    def judge(self, timings: Sequence[Timing]) -> list[Verdict]:
        decided = len(timings) >= self._decided_at
        return [judged(Outcome.PASS if decided else Outcome.INCONCLUSIVE)]

    def run(self, budget: SampleBudget) -> tuple[int, Verdict]:
        """How many samples were taken, and the verdict."""
        timings, [verdict] = until_decided(
            self.samples(), self.judge, budget, clock=lambda: self.now_s
        )
        assert self.now_s == len(timings) * self._sample_s, "none is taken that nobody judges"
        return len(timings), verdict


def judged(outcome: Outcome) -> Verdict:
    """A verdict that says this."""
    return Verdict("s", "m", outcome, "so it is")


# Until decided


@pytest.mark.parametrize("decided_at", [1, 4, MAX_SAMPLES, NEVER])
def test_samples_are_taken_until_it_is_decided(decided_at: int) -> None:
    count, verdict = Bench(decided_at).run(SampleBudget(AMPLE))
    assert count == min(decided_at, MAX_SAMPLES)
    assert verdict.outcome is (Outcome.INCONCLUSIVE if decided_at == NEVER else Outcome.PASS)


@pytest.mark.parametrize(
    ("budget_s", "sample_s", "samples"),
    [
        (0.0, SAMPLE_S, 1),
        (0.0, 0.0, 1),  # taken ahead, which takes no time
        (SAMPLE_S - 1, SAMPLE_S, 1),
        (SAMPLE_S, SAMPLE_S, 2),
        (2.5 * SAMPLE_S, SAMPLE_S, 3),
        (AMPLE, 40.0, SCENARIO_S // 40),  # one scenario leaves time for the others
    ],
)
def test_a_budget_allows_what_fits_and_is_shared_by_scenarios(
    budget_s: float, sample_s: float, samples: int
) -> None:
    budget = SampleBudget(budget_s)
    count, verdict = Bench(NEVER, sample_s=sample_s).run(budget)
    assert count == samples < MAX_SAMPLES
    assert budget.left_s == budget_s - (samples - 1) * sample_s, "the first one is free"
    assert verdict.text.startswith("so it is; undecided because of")


def test_a_sample_that_fails_ends_it_and_where_there_are_no_more_it_stays_undecided() -> None:
    def failing() -> Iterator[Timing]:
        yield timing()
        raise ScenarioError("s", Outcome.BROKEN, "its process ended with code 1")

    bench = Bench(NEVER)
    with pytest.raises(ScenarioError, match="ended with code 1"):
        until_decided(failing(), bench.judge, SampleBudget(AMPLE))
    _, [verdict] = until_decided(iter([timing()] * 2), bench.judge, SampleBudget(AMPLE))
    assert verdict.outcome is Outcome.INCONCLUSIVE


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

    timings, verdicts = until_decided(Bench(1).samples(), judge, SampleBudget(AMPLE))
    assert len(timings) == samples
    for verdict, outcome in zip(verdicts, first, strict=True):
        assert verdict.outcome is (outcome if samples == 1 else Outcome.PASS)
        undecided = verdict.outcome is Outcome.INCONCLUSIVE
        assert ("undecided because of" in verdict.sentence) is undecided


# Noise has a name


def undecided(*ratios: float) -> str:
    """What is said of processes that saw these ratios."""
    return noise([timing(ratio) for ratio in ratios], sample_s=12.0)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Gives the machine two cores and a load, which is low at first."""

    def load(average: float) -> None:
        monkeypatch.setattr(psutil, "getloadavg", lambda: (average, 9.0, 9.0))

    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    load(0.3)
    return load


def test_every_cause_is_named_with_its_figures_and_no_other(
    loaded: Callable[[float], None],
) -> None:
    loaded(4.5)
    assert undecided(0.905, 1.105).startswith(
        "undecided because of other processes (load 4.5 on 2 cores) and processes that differ by "
        "14.1 %; "
    )
    loaded(2.9)
    differing = undecided(0.905, 1.105)
    assert differing.startswith("undecided because of processes that differ by 14.1 %; ")


@pytest.mark.parametrize(
    ("taken", "remedy"),
    [
        (2, f"allow {MAX_SAMPLES - 2} samples more: --perf-budget {12 * (MAX_SAMPLES - 2)}"),
        (MAX_SAMPLES - 1, "allow 1 sample more: --perf-budget 12"),
        (
            MAX_SAMPLES,
            "add a session to the baseline: python -m pytest perf_tests --perf-update-baselines",
        ),
    ],
)
@pytest.mark.usefixtures("loaded")
def test_too_few_processes_are_named_where_nothing_disturbed(taken: int, remedy: str) -> None:
    said = undecided(*[1.0] * taken)
    assert said.startswith("undecided because of nothing but too few processes; ")
    assert said.endswith(remedy)
