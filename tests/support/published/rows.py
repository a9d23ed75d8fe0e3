"""The table of docs/simulated.md, printed row by row."""

from __future__ import annotations

from tests.support.published.figures import Figure
from tests.support.published.table import FIGURES


def print_rows() -> None:
    """Print the table, and how many of the unseen figures agree."""
    print("| run | card | published | exact | modelled | deviation of modelled | source |")
    print("|---|---|---:|---:|---:|---:|---|")
    for figure in FIGURES:
        print(figure.row, flush=True)
    unseen = [figure for figure in FIGURES if not figure.seen]
    for limit in (0.01, 0.05):
        print(f"within {limit:.0%}: {_within(unseen, limit)} of {len(unseen)}")


def _within(figures: list[Figure], limit: float) -> int:
    return sum(abs(figure.deviation) <= limit for figure in figures)
