"""Whether two samples at once disturb each other: `python -m tests.benchmarks.two_at_once`.

Each scenario's ratio to the frozen reference alone, and beside another pair of processes, as
`--perf-at-once 2` takes it: passes of either way in turn, until the next would not be done in time
(7.5 minutes, or as many as are given). Nothing else should run meanwhile.

The shift is how much larger the ratio is beside another pair, with its 95 % interval (Welch); the
spread is the standard deviation of samples of one scenario. It may become the default where the
interval of all scenarios lies within 1 % of none, no scenario's lies beyond, and the spread is not
certainly larger.
"""

from __future__ import annotations

import math
import random
import sys
import time
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats

from fixtures.devices.cpu import CpuDevice
from fixtures.measuring.cores import Cores, separate_cores
from fixtures.measuring.repetition import RoundRobin
from fixtures.measuring.rounds import Plan
from fixtures.measuring.sampler import Sampler, in_fresh_process
from fixtures.records.timing import Timing
from fixtures.scenarios import Scenario, find_scenario

TECHNIQUES = ("fp32", "attention_slicing", "channels_last", "prompt_embeddings")
PLAN = Plan().short
MINUTES = 7.5
ALLOWED = 0.01
Logs = Mapping[str, Sequence[float]]
"""Log ratios by scenario."""


def main(minutes: float) -> None:
    """Sample both ways in turn, and print what each scenario and all together say."""
    numbers = separate_cores()[:2]
    if len(numbers) < 2:
        raise SystemExit("two samples at once take two cores that this process may use")
    device = CpuDevice()
    ways = {
        1: in_fresh_process(device),
        2: in_fresh_process(device, cores=Cores(numbers)),
    }
    scenarios = [find_scenario("storybook", technique) for technique in TECHNIQUES]
    logs: dict[int, dict[str, list[float]]] = {way: {} for way in ways}
    took_s: dict[int, list[float]] = {way: [] for way in ways}
    begun_s, longest_s = time.monotonic(), 0.0
    ways[1](scenarios[0], Plan(1, 1))  # the server of processes is there from now on
    # Two passes at least: of one there is no spread.
    while len(took_s[1]) < 2 or time.monotonic() - begun_s + longest_s < 60 * minutes:
        start_s = time.monotonic()
        # Each way is first as often as last, and everyone has every neighbour.
        for at_once in sorted(ways, reverse=len(took_s[1]) % 2 == 1):
            random.shuffle(scenarios)
            way_s = time.monotonic()
            for name, timing in one_pass(scenarios, ways[at_once], at_once).items():
                logs[at_once].setdefault(name, []).append(timing.sample.log_ratio)
            took_s[at_once].append(time.monotonic() - way_s)
        longest_s = max(longest_s, time.monotonic() - start_s)
        alone_s, at_once_s = (took_s[way][-1] for way in ways)
        print(
            f"pass {len(took_s[1])}: {alone_s:.0f} s alone, {at_once_s:.0f} s at once", flush=True
        )
    print(table(logs[1], logs[2]))
    each_s = [float(np.median(took_s[way])) / len(scenarios) for way in ways]
    print("a sample takes {:.1f} s alone, and {:.1f} s at once".format(*each_s))


def one_pass(scenarios: Sequence[Scenario], sampler: Sampler, at_once: int) -> dict[str, Timing]:
    """A sample of each, so many at the same time."""
    robin = RoundRobin(lambda each: (sampler(each, PLAN) for _ in range(1)), scenarios, 1, at_once)
    return {scenario.technique.id: next(robin.of(scenario)) for scenario in scenarios}


def table(alone: Logs, at_once: Logs) -> str:
    """Each scenario and all of them, and what follows."""
    lines = [
        f"{'':20} {'samples':>7} {'alone':>7} {'at once':>8} {'shift':>7} {'95 %':>16} "
        f"{'spread alone':>13} {'at once':>8}"
    ]
    for name in alone:
        lines.append(_line(name, [alone[name]], [at_once[name]]))
    names = list(alone)
    sides = [[way[name] for name in names] for way in (alone, at_once)]
    lines.append(_line("all", *sides))
    shift, half = shift_of(*sides)
    each = [shift_of([alone[name]], [at_once[name]]) for name in names]
    answers = {
        f"all within {ALLOWED:.0%}": abs(shift) + half <= ALLOWED,
        "none beyond": all(abs(one) - around <= ALLOWED for one, around in each),
        "no larger spread (F, 5 %)": spread_is_larger(*sides) > 0.05,
    }
    answers["may be the default"] = all(answers.values())
    lines += [f"{asked}: {'yes' if holds else 'no'}" for asked, holds in answers.items()]
    return "\n".join(lines)


def _line(name: str, alone: Sequence[Sequence[float]], at_once: Sequence[Sequence[float]]) -> str:
    shift, half = shift_of(alone, at_once)
    ratios = [math.exp(np.mean([np.mean(each) for each in side])) for side in (alone, at_once)]
    spreads = [_spread(side)[0] for side in (alone, at_once)]
    interval = f"[{shift - half:+.2%}, {shift + half:+.2%}]"
    samples = sum(map(len, at_once))
    return (
        f"{name:20} {samples:7} {ratios[0]:7.4f} {ratios[1]:8.4f} {shift:+7.2%} {interval:>16} "
        f"{spreads[0]:13.2%} {spreads[1]:8.2%}"
    )


def _spread(side: Sequence[Sequence[float]]) -> tuple[float, int]:
    """The standard deviation within scenarios, and its degrees of freedom."""
    dof = sum(len(each) - 1 for each in side)
    squares = sum(float(np.var(each)) * len(each) for each in side)
    return math.sqrt(squares / dof) if dof else math.nan, dof


def shift_of(
    alone: Sequence[Sequence[float]], at_once: Sequence[Sequence[float]]
) -> tuple[float, float]:
    """How much larger the log ratios are at once, the mean over scenarios; half the interval."""
    shifts = [np.mean(two) - np.mean(one) for one, two in zip(alone, at_once, strict=True)]
    variances = []
    for side in (alone, at_once):
        spread, side_dof = _spread(side)
        variances.append((sum(spread**2 / len(each) for each in side) / len(side) ** 2, side_dof))
    total = sum(variance for variance, _ in variances)
    dof = total**2 / sum(variance**2 / side_dof for variance, side_dof in variances)
    return float(np.mean(shifts)), float(stats.t.ppf(0.975, dof)) * math.sqrt(total)


def spread_is_larger(alone: Sequence[Sequence[float]], at_once: Sequence[Sequence[float]]) -> float:
    """How likely the spread at once would be so large by chance, were it that of one alone."""
    (narrow, narrow_dof), (wide, wide_dof) = _spread(alone), _spread(at_once)
    return float(stats.f.sf((wide / narrow) ** 2, wide_dof, narrow_dof))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else MINUTES)
