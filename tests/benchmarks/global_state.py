"""What it takes to guard a scenario's process: `python -m tests.benchmarks.global_state`.

Prints CPU time of reading all process-wide state and of looking for changes, and of an observation
on the CPU and one in the simulation, both of which do it once. A minute on a quiet core.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from fixtures.devices import open_device
from fixtures.devices.global_state import GlobalState
from fixtures.measuring.observation import observe
from fixtures.scenarios import find_scenario

REPETITIONS = 9
SCENARIOS = {"cpu": ("storybook", "fp32"), "simulated": ("sd15", "fp16")}


def least_ms(call: Callable[[], object], repetitions: int) -> float:
    """The least CPU time of this thread, in ms."""
    times_s = []
    for _ in range(repetitions):
        start_s = time.thread_time()
        call()
        times_s.append(time.thread_time() - start_s)
    return min(times_s) * 1e3


def main() -> None:
    """Measure and print."""
    for name, (workload, technique) in SCENARIOS.items():
        device, scenario = open_device(name), find_scenario(workload, technique)
        observe(scenario, device)  # imports and loads
        observed_ms = least_ms(lambda: observe(scenario, device), 3)  # noqa: B023
        guarded_ms = least_ms(lambda: GlobalState().put_back(), REPETITIONS)
        print(
            f"{scenario.id} on {name}: {guarded_ms:.0f} ms to read all state and put it back, "
            f"{guarded_ms / observed_ms:.1%} of an observation's {observed_ms:,.0f} ms"
        )


if __name__ == "__main__":
    main()
