"""`python -m tests.support.fit_answers` prints the table of docs/fit.md, some twenty-five minutes.

The fastest way that fits, of the pipelines that people use most on the cards that they ask about.
"""

from __future__ import annotations

import argparse
import sys
from typing import Final

from fixtures.commands.errors import CommandError
from fixtures.commands.fit.__main__ import cards_of, parsed
from fixtures.commands.fit.answering import answered
from fixtures.commands.fit.question import workload_of
from fixtures.records.fit import Fit
from fixtures.records.units import GIB

PIPELINES: Final = (
    *("sd15", "sdxl", "sd3", "flux", "qwen-image", "z-image"),
    *("chroma", "wan-1.3b", "wan-14b", "cogvideox-5b"),
)
CARDS: Final = ("rtx-3060", "rtx-4060-ti-16gb", "l4", "rtx-4090", "a100-40gb")


def cell(fit: Fit) -> str:
    """The fastest way that fits, what it needs of the card and of the host."""
    answers = fit.answers()
    if not answers:
        return "nothing"
    way = answers[0].way
    barely = ", barely" if fit.fits(way) == "barely" else ""
    host = f" + {way.host_bytes / GIB:.0f} host" if way.host_bytes > GIB else ""
    return f"`{way.name}` {way.needed_bytes / GIB:.1f}{host}{barely}"


def row(pipeline: str) -> str:
    """The row of a pipeline."""
    options: argparse.Namespace = parsed(
        [pipeline, *(word for card in CARDS for word in ("--card", card))]
    )
    workload = workload_of(options)
    fits = answered(workload, cards_of(options), options)
    call = workload.call
    frames = f", {call.frames} frames" if workload.kind == "video" else ""
    cells = " | ".join(map(cell, fits.cards))
    return f"| `{pipeline}` {call.width}x{call.height}{frames} | {cells} |"


if __name__ == "__main__":
    print(f"| GiB | {' | '.join(CARDS)} |")
    print("|---" * (len(CARDS) + 1) + "|")
    for name in sys.argv[1:] or PIPELINES:
        try:
            print(row(name), flush=True)
        except CommandError as error:
            sys.exit(str(error))
