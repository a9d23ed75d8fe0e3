"""Samples whose ratio and wall times are known."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from fixtures.records.timing import Evidence, Group, Timing
from fixtures.studies.power.rates import RatedLevel
from fixtures.studies.power.replay import Rate, Tally
from fixtures.studies.power.rules import SUITE
from fixtures.studies.power.samples import LabelledSample, Level

UNCHANGED, LOADED = Level(), Level(loaded=True)
EVEN = (0.99, 1.0, 1.01)
"""Wall times of one process whose median and mean are one second."""


def known(
    ratio: float, level: Level = UNCHANGED, walls_s: Sequence[float] = EVEN, took_s: float = 10.0
) -> LabelledSample:
    """A sample whose candidate rounds take `ratio` reference rounds each."""
    group = Group((0.5,) * (len(walls_s) + 1), (0.5 * ratio,) * len(walls_s))
    timing = Timing((group,), tuple(walls_s), Evidence(1.0, 0.0, 1.0))
    return LabelledSample(level, timing, took_s, at_s=0.0)


def slower_by(share: float) -> LabelledSample:
    """A sample that is slower by a share on every clock."""
    return known(1 + share, walls_s=[wall_s * (1 + share) for wall_s in EVEN])


def noisy(count: int, shift: float, noise: float, seed: int) -> list[LabelledSample]:
    """Samples around a shift of the ratio, with wall times that wander far more."""
    chance = random.Random(seed)
    return [
        known(
            math.exp(shift + chance.gauss(0, noise)),
            walls_s=(math.exp(chance.gauss(shift, 0.3)),) * 3,
        )
        for _ in range(count)
    ]


def rated_level(
    level: Level,
    regression: float,
    *,
    undecided: float = 0.0,
    run: float = 0.0,
    independent: int = 10,
    baseline_loaded: bool = False,
    rule: str = SUITE,
) -> RatedLevel:
    """What a rule said of a level, without a replay."""
    tally = Tally(
        rule,
        Rate(regression, regression, regression),
        Rate(undecided, undecided, undecided),
        run=run,
        decisions=10,
        processes=2 * independent,
        judged=independent,
        independent=independent,
        mean_samples=1.0,
        mean_s=12.0,
        within_s=24.0,
    )
    return RatedLevel(level, baseline_loaded, level.share, tally)
