"""Forecasts of a call's time from what the simulation counts, fitted to published times."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from scipy.optimize import least_squares

from fixtures.devices.simulated.profiles import PROFILES

KINDS: Final = ("matrix product", "attention", "convolution", "other")
WEIGHTS: Final = (0.1, 100.0)
"""The range of a factor on what a kind needs at the makers' peaks."""
LAUNCH: Final = 3.0
"""Where the logarithm of the factor on a launch starts. A fit that starts with calls of which none
waits for the host, never finds any that do."""
PRIOR: Final = 1e-3
"""Pulls what no time tells of towards one, and nothing else."""

T = TypeVar("T")


@dataclass(frozen=True)
class Timed:
    """A published time, and what bounds it.

    `kinds_s` are what `KINDS` need at the card's peaks, `queued_s` what the host needs to queue
    every operation, `copied_s` the copies over its link, `bound_s` what `nox -s fit` prints.
    """

    card: str
    published_s: float
    bound_s: float
    kinds_s: tuple[float, ...] = (0.0,) * len(KINDS)
    queued_s: float = 0.0
    copied_s: float = 0.0

    @property
    def ratio(self) -> float:
        """How many times its bound it is."""
        return self.published_s / self.bound_s


Forecast = Callable[[Timed], float]
"""The seconds that a call is forecast to take."""
Fit = Callable[[Sequence[Timed]], Forecast]
Group = Callable[[str], str]
"""What cards have in common."""


def _whole(group: Group) -> Fit:
    """A factor on the bound for each group of cards; one that was not seen has that of all."""

    def fit(seen: Sequence[Timed]) -> Forecast:
        logs = [(group(one.card), np.log(one.ratio)) for one in seen]
        of_all = np.mean([log for _, log in logs])
        found = {key: np.mean([log for other, log in logs if other == key]) for key, _ in logs}
        return lambda one: float(np.exp(found.get(group(one.card), of_all)) * one.bound_s)

    return fit


def _by_kind(group: Group) -> Fit:
    """A factor for each kind, launch and copy, times one for each group of cards.

    The host queues while the device computes, so the longer of the two counts; copies come on top.
    A group that was not seen has the mean of the others.
    """

    def fit(seen: Sequence[Timed]) -> Forecast:
        groups = sorted({group(one.card) for one in seen})

        def seconds(logs: np.ndarray, times: Sequence[Timed]) -> np.ndarray:
            *kinds, launch, copy = np.exp(logs[: len(KINDS) + 2])
            of_groups = dict(zip(groups, logs[len(KINDS) + 2 :], strict=True))
            mean = np.mean(logs[len(KINDS) + 2 :])
            mine = np.exp([of_groups.get(group(one.card), mean) for one in times])
            device = np.array([one.kinds_s for one in times]) @ kinds * mine
            queued = launch * np.array([one.queued_s for one in times])
            copied = copy * np.array([one.copied_s for one in times])
            return np.asarray(np.maximum(device, queued) + copied)

        published_s = np.array([one.published_s for one in seen])

        def residuals(logs: np.ndarray) -> np.ndarray:
            return np.concatenate([np.log(seconds(logs, seen) / published_s), PRIOR * logs])

        start = np.full(len(KINDS) + 2 + len(groups), 0.5)
        start[len(KINDS)] = LAUNCH
        found = least_squares(residuals, start, bounds=np.log(WEIGHTS)).x
        return lambda one: float(seconds(found, [one])[0])

    return fit


def _all_alike(_: str) -> str:
    return ""


def _generation(card: str) -> str:
    return "{}.{}".format(*PROFILES[card].compute_capability)


FITS: Final[Mapping[str, Fit]] = {
    "the bound itself": lambda _: lambda one: one.bound_s,
    "one factor": _whole(_all_alike),
    "one factor a card": _whole(str),
    "one factor a kind of operation": _by_kind(_all_alike),
    "by kind and generation": _by_kind(_generation),
    "by kind and card": _by_kind(str),
}


def errors(forecast: Forecast, times: Iterable[Timed]) -> list[float]:
    """How far each forecast is off, relative to what was published, without its sign."""
    return [abs(forecast(one) / one.published_s - 1) for one in times]


def pairs_by(keyed: Iterable[tuple[Hashable, T]]) -> list[tuple[T, T]]:
    """All pairs of what has the same key."""
    groups: dict[Hashable, list[T]] = {}
    for key, value in keyed:
        groups.setdefault(key, []).append(value)
    return [pair for group in groups.values() for pair in itertools.combinations(group, 2)]


def order(pairs: Iterable[tuple[Timed, Timed]], apart: float) -> tuple[int, int]:
    """How many bounds tell which is faster, by differing by more than `apart`; how many rightly."""
    told = [
        (one.bound_s < other.bound_s) == (one.published_s < other.published_s)
        for one, other in pairs
        if not 1 / apart <= one.bound_s / other.bound_s <= apart
    ]
    return len(told), sum(told)
