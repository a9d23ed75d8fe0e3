"""Which interval errs as often as it says: `python -m tests.benchmarks.intervals`, some 3 minutes.

Unchanged latencies are drawn again and again; printed is how often the one-sided lower bound of the
shift lies above zero, which should be the stated error. Rows are shapes of the noise between
processes and how many of them each side has; `moderated` borrows from the spread of eleven other
scenarios, whose true spreads differ by a factor of two from each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fixtures.records.timing import Sample
from fixtures.verdicts.statistics import Priors, Spread, shift_against, spread_of

RUNS = 10_000
RESAMPLES = 400
ERROR = 0.005
DEVIATION = 0.03
SIDES = ((5, 1), (5, 3), (10, 1), (10, 3), (3, 3), (10, 10))

Noise = Callable[
    [np.random.Generator, tuple[int, ...]], "np.ndarray[tuple[int, ...], np.dtype[np.float64]]"
]


def _outliers(chance: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    wide = chance.random(shape) < 0.1
    return chance.normal(0, np.where(wide, 3 * DEVIATION, DEVIATION))


NOISES = {
    "normal": lambda chance, shape: chance.normal(0, DEVIATION, shape),
    "Student, 5 degrees": lambda chance, shape: DEVIATION * chance.standard_t(5, shape),
    "a tenth thrice as wide": _outliers,
}


def _bootstrap_is_wrong(new: np.ndarray, baseline: np.ndarray, chance: np.random.Generator) -> bool:
    """The percentile bootstrap: both sides drawn anew, the lower quantile of the shift."""
    means = [chance.choice(side, (RESAMPLES, len(side))).mean(axis=1) for side in (new, baseline)]
    return bool(np.quantile(means[0] - means[1], ERROR) > 0)


def _others(noise: Noise, chance: np.random.Generator, processes: int) -> Spread:
    scales = np.exp(chance.uniform(-0.35, 0.35, 11))
    ratios = noise(chance, (11, processes)) * scales[:, None]
    return spread_of([list(scenario) for scenario in ratios])


def rates(noise: Noise, processes: int, samples: int) -> dict[str, float]:
    """How often each interval is wrong about unchanged latencies."""
    chance = np.random.default_rng(processes * 100 + samples)
    wrong = dict.fromkeys(("t", "moderated t", "bootstrap"), 0)
    for _ in range(RUNS):
        baseline, new = noise(chance, (processes,)), noise(chance, (samples,))
        some = [Sample(float(value), 0.0) for value in new]
        others = _others(noise, chance, processes)
        wrong["t"] += shift_against(some, [list(baseline)]).lower_bound(ERROR) > 0
        wrong["moderated t"] += (
            shift_against(some, [list(baseline)], Priors(others)).lower_bound(ERROR) > 0
        )
    for _ in range(RUNS // 10):
        baseline, new = noise(chance, (processes,)), noise(chance, (samples,))
        wrong["bootstrap"] += 10 * _bootstrap_is_wrong(new, baseline, chance)
    return {name: count / RUNS for name, count in wrong.items()}


def main(sides: Sequence[tuple[int, int]] = SIDES) -> None:
    """Print the table."""
    print("| noise | baseline + new | t | moderated t | bootstrap |\n|---|---|---|---|---|")
    for name, noise in NOISES.items():
        for processes, samples in sides:
            wrong = rates(noise, processes, samples)
            cells = " | ".join(f"{rate:.2%}" for rate in wrong.values())
            print(f"| {name} | {processes} + {samples} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
