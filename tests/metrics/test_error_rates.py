"""How often judgements err, by simulation of whole ones: another sample until they decide."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fixtures.metrics.latency_tolerances import RATIO_TOLERANCE
from fixtures.metrics.latency_verdicts import judge_change, judge_ratio
from fixtures.metrics.limits import Margin
from fixtures.metrics.statistics import (
    MAX_SAMPLES,
    OTHERS_DOF,
    REGRESSION_ERROR,
    Priors,
    Spread,
    decide,
    shift_of,
    spread_of,
)
from fixtures.records.outcome import Outcome
from fixtures.records.timing import Sample
from tests.metrics.cases import case, side_case, timed

RUNS = 1000
PROCESSES = 10
OTHERS = 11
"""Processes of a baseline, and further scenarios beside it, each with a spread of its own."""
MAX_FALSE_ALARMS = RUNS * REGRESSION_ERROR + 3 * math.sqrt(RUNS * REGRESSION_ERROR)
"""What a rate of the stated error stays below in all but one of a thousand simulations."""


def outcomes(slowdown: float, deviation: float, seed: int) -> list[Outcome]:
    """The outcomes of `RUNS` scenarios that are slower by this share."""
    chance = np.random.default_rng(seed)
    scales = deviation * np.exp(chance.uniform(-0.5, 0.5, OTHERS))
    judged_outcomes = []
    for _ in range(RUNS):
        ratios = tuple(np.exp(chance.normal(0, deviation, PROCESSES)))
        others = spread_of([list(chance.normal(0, scale, PROCESSES)) for scale in scales])
        on = case(entry=timed(ratios), priors=Priors(others))
        samples: list[Sample] = []
        outcome = Outcome.INCONCLUSIVE
        while outcome is Outcome.INCONCLUSIVE and len(samples) < MAX_SAMPLES:
            samples.append(Sample(math.log1p(slowdown) + chance.normal(0, deviation), 0.0))
            outcome = judge_ratio(on, samples).outcome
        judged_outcomes.append(outcome)
    return judged_outcomes


@pytest.mark.parametrize(("deviation", "passing"), [(0.015, 0.98), (0.10, 0)])
def test_unchanged_code_fails_in_at_most_half_a_percent_and_passes_on_a_quiet_machine(
    deviation: float, passing: float
) -> None:
    judged = outcomes(0.0, deviation, seed=1)
    assert judged.count(Outcome.REGRESSION) <= MAX_FALSE_ALARMS
    assert judged.count(Outcome.PASS) >= passing * RUNS


def test_a_loss_that_a_pass_rules_out_seldom_passes() -> None:
    """Each sample may pass it in 5 % of cases; further samples add to that, bounded here."""
    passed = outcomes(RATIO_TOLERANCE.margin.pass_bound, 0.05, seed=4).count(Outcome.PASS)
    assert passed <= 0.18 * RUNS
    larger = outcomes(2 * RATIO_TOLERANCE.margin.pass_bound, 0.05, seed=5).count(Outcome.PASS)
    assert larger <= 0.06 * RUNS


def test_an_unchanged_release_seldom_fails_though_it_is_sampled_again() -> None:
    """Stated: one in two hundred; half of it is what 2,000 trials can tell from more."""
    chance = np.random.default_rng(1)
    on = side_case()
    alarms = 0
    for _ in range(2000):
        samples: list[Sample] = []
        outcome = Outcome.INCONCLUSIVE
        while outcome is Outcome.INCONCLUSIVE and len(samples) < MAX_SAMPLES:
            samples.append(Sample(chance.normal(0, 0.015), 0.001))
            outcome = judge_change(on, samples).outcome
        alarms += outcome is Outcome.REGRESSION
    assert alarms <= 10


# Sessions

PROCESS, SESSION = 0.015, 0.015
DOCUMENTED = Priors(Spread(PROCESS, OTHERS_DOF), Spread(SESSION, 20.0))
"""Spreads of processes and sessions, as they are documented."""


def alarms(sessions: int) -> int:
    """Of `RUNS` unchanged scenarios, those that are called slower: each run is its own session."""
    chance = np.random.default_rng(sessions)
    wrong = 0
    for _ in range(RUNS):
        centres = chance.normal(0, SESSION, sessions + 1)
        drawn = chance.normal(0, PROCESS, (sessions + 1, MAX_SAMPLES)) + centres[:, None]
        new = [Sample(float(log), 0.0) for log in drawn[0]]
        for count in range(1, MAX_SAMPLES + 1):
            shift = shift_of(new[:count], drawn[1:, :6].tolist(), DOCUMENTED)
            if decide(shift, Margin(0.0, 0.0), comparisons=1).outcome is Outcome.REGRESSION:
                wrong += 1
                break
    return wrong


@pytest.mark.parametrize("sessions", [1, 4])
def test_with_sessions_unchanged_code_fails_as_seldom_as_stated(sessions: int) -> None:
    assert alarms(sessions) <= MAX_FALSE_ALARMS
