"""How often a comparison errs on latency: `python -m tests.support.error_rates --runs 20`.

Both sides are this environment, in workers of their own; with `--slower` head's UNet takes 5 % more
of the processor's time. Prints every verdict with its seconds, and how many there were of each.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from contextlib import closing

from fixtures.commands.compare.comparing import Comparing
from fixtures.commands.compare.side import Side
from fixtures.settings import Settings
from fixtures.worker.client import Worker
from tests.support.patched_python import command
from tests.support.scenarios import find_scenario


def main() -> None:
    """Compare, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--slower", action="store_true")
    parser.add_argument("--technique", default="sdpa")
    options = parser.parse_args()
    scenario, settings = find_scenario("storybook", options.technique), Settings(device="cpu")
    changed = command("slower") if options.slower else [sys.executable]
    outcomes: Counter[str] = Counter()
    for _ in range(options.runs):
        start_s = time.monotonic()
        base, head = Worker(settings, [sys.executable], "base"), Worker(settings, changed, "head")
        with closing(base), closing(head):
            [verdict] = Comparing(Side(base), Side(head), ("latency",)).run([scenario]).verdicts
        outcomes[verdict.outcome.value] += 1
        print(f"{verdict.sentence} ({time.monotonic() - start_s:.0f} s)", flush=True)
    print(dict(outcomes))


if __name__ == "__main__":
    main()
