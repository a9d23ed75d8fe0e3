"""The protocol's arithmetic: what is a hit, and how many there are."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from fixtures.records.units import GIB
from tests.support.published.records import Counter, Figure

SLACK: dict[Counter, float] = {
    "allocated": 0.01,
    "loaded": 0.01,
    "held": 0.01,
    "reserved": 0.02,
    "rise": 0.02,
    "loaded, reserved": 0.02,
    "shown": 0.02,
}
SHOWN_SLACK_BYTES = 0.15 * GIB
"""A context takes 0.3 to 0.6 GiB."""
KINDS: dict[str, tuple[Counter, ...]] = {
    "allocated": ("allocated",),
    "reserved": ("reserved", "rise"),
    "after loading, after a call": ("loaded", "loaded, reserved", "held"),
    "shown": ("shown",),
}
"""The kinds of figures of which there are totals, beside bounds."""


def published_bytes(figure: Figure) -> tuple[float, float]:
    """The lowest and the highest figure that was published."""
    low, _, high = figure.published.partition(" to ")
    return float(low) * figure.unit, float(high or low) * figure.unit


def interval_bytes(figure: Figure) -> tuple[float, float]:
    """All sizes that round to what was published."""
    low, high = published_bytes(figure)
    digit = Decimal(figure.published.partition(" to ")[0]).as_tuple().exponent
    half = 0.5 * 10 ** int(digit) * figure.unit
    return low - half, high + half


def is_hit(figure: Figure, ours_bytes: float) -> bool:
    """Whether ours is in the interval, or as near to it as the protocol allows."""
    published = published_bytes(figure)[1]
    if figure.bound == "at most":
        return ours_bytes <= published
    if figure.bound == "more than":
        return ours_bytes > published
    low, high = interval_bytes(figure)
    slack = SLACK[figure.counter] * published
    if figure.counter == "shown":
        slack += SHOWN_SLACK_BYTES
    return low - slack <= ours_bytes <= high + slack


def deviation(figure: Figure, ours_bytes: float) -> float:
    """Of ours from the nearest published figure, relative."""
    low, high = published_bytes(figure)
    return ours_bytes / min(max(ours_bytes, low), high) - 1


def kind_of(figure: Figure) -> str:
    """The kind by which it is counted."""
    if figure.bound:
        return "bounds"
    return next(kind for kind, counters in KINDS.items() if figure.counter in counters)


def group_of(seen: bool, outside: bool) -> str:
    """The heading that a figure or report is under."""
    return "outside" if outside else "seen" if seen else "unseen"


def share(hits: Iterable[bool]) -> str:
    """How many of how many, such as `9 of 10 (90 %)`; a dash for none."""
    found = list(hits)
    if not found:
        return "-"
    return f"{sum(found)} of {len(found)} ({sum(found) / len(found):.0%})".replace("%", " %")
