"""What the harness itself costs per timed round: `python -m tests.benchmark_overhead`.

An empty pipeline goes through the same rounds and the same `benchmark.pedantic` as a real one.
"""

from __future__ import annotations

import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

ROUNDS = 2000
CONTROL = """
import time
from fixtures.devices.cpu import CpuDevice
from fixtures.rounds import PairedRounds, Plan
from tests.test_rounds import FakeWorkload, _scenario

class EmptyWorkload(FakeWorkload):
    def draw(self, pipeline, steps=None):
        pass

def test_empty_pipeline(benchmark):
    device = CpuDevice()
    device.now_s = 0.0
    rounds = PairedRounds(_scenario(EmptyWorkload(device)), device, Plan(groups=1, pairs={rounds}))
    start = time.perf_counter()
    # The clocks tick while nothing is done: a group refuses rounds of no length at all.
    benchmark.pedantic(
        rounds.candidate_round, setup=rounds.before_round, rounds={rounds}, iterations=1
    )
    total = time.perf_counter() - start
    timed = benchmark.stats.stats.median
    print(f"\\nper round, timed: {{timed * 1e6:.1f}} us; with pairing and set-up: "
          f"{{total / {rounds} * 1e6:.1f}} us")
"""


def main() -> int:
    """Run the control and print the cost of a round."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "test_overhead.py"
        path.write_text(textwrap.dedent(CONTROL).format(rounds=ROUNDS))
        return pytest.main([str(path), "-q", "-s", "--rootdir", folder, "-p", "no:cacheprovider"])


if __name__ == "__main__":
    sys.exit(main())
