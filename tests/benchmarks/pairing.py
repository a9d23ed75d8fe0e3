"""How far processes differ, by how rounds are paired: `python -m tests.benchmarks.pairing [N]`.

N processes (8 by default) of unchanged storybook-fp32 with the frozen reference on the same core,
and N with rounds that alternate, in turn. Nothing else should run meanwhile.
"""

from __future__ import annotations

import math
import statistics
import sys
import time

from fixtures.devices import Device
from fixtures.devices.cpu import CpuDevice
from fixtures.measuring.rounds import Plan
from fixtures.measuring.sampler import in_fresh_process
from fixtures.records.timing import Timing
from fixtures.scenarios import find_scenario


class Alternating(CpuDevice):
    """The CPU, as where a core cannot be shared."""

    shares_core = False


def main(processes: int) -> None:
    """Sample in turn, and print what each process and each way says."""
    scenario = find_scenario("storybook", "fp32")
    ways: dict[str, Device] = {"on one core": CpuDevice(), "alternating": Alternating()}
    taken: dict[str, list[Timing]] = {name: [] for name in ways}
    for _ in range(processes):
        for name, device in ways.items():
            start_s = time.perf_counter()
            timing = in_fresh_process(device)(scenario, Plan())
            took_s = time.perf_counter() - start_s
            taken[name].append(timing)
            sample = timing.sample
            print(
                f"{name}: x{math.exp(sample.log_ratio):.4f}, standard error "
                f"{sample.standard_error:.2%}, {took_s:.1f} s, {timing.evidence.sentence()}"
            )
    for name, timings in taken.items():
        spread = statistics.stdev(timing.sample.log_ratio for timing in timings)
        print(f"{name}: {processes} processes differ by {spread:.2%} (standard deviation)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8)
