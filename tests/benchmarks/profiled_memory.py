"""Peaks by the ledger and by the profiler, of code that is not compiled, as a table.

`python -m tests.benchmarks.profiled_memory`; arguments are scenarios other than `SCENARIOS`, such
as `storybook/fp32`. Some 3 minutes on a quiet core, most of them for half precision.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from fixtures.devices.cpu import CpuDevice
from fixtures.devices.garbage import collector_off
from fixtures.devices.ledger import StorageLedger, resident_tensors
from fixtures.devices.phases import Phases
from fixtures.devices.profiled_memory import ProfiledMemory
from fixtures.scenarios import find_scenario

SCENARIOS = (
    *("storybook/fp32", "storybook/bf16", "storybook/autocast", "storybook/layerwise_casting"),
    *("storybook/attention_slicing", "storybook/traced_unet", "storybook/tiny_vae"),
    *("storybook-256/vae_tiling", "storybook-batch8/vae_slicing", "storybook-dit/fp32"),
)
MEASURES: tuple[Any, ...] = (StorageLedger, ProfiledMemory, partial(ProfiledMemory, scratch=True))


def main() -> None:
    """Measure and print."""
    print("| scenario | part | ledger | profiler | with scratch |\n|---|---|---:|---:|---:|")
    device = CpuDevice()
    for name in sys.argv[1:] or SCENARIOS:
        scenario = find_scenario(*name.split("/"))
        with scenario.running(device) as pipeline, collector_off():
            scenario.workload.draw(pipeline, steps=2)
            peaks = []
            for measure in MEASURES:
                memory = measure(resident_tensors(pipeline))
                with Phases(pipeline, memory.enter_component), memory:
                    scenario.workload.draw(pipeline)
                peaks.append(memory.component_peak_bytes)
            ledger, *others = peaks
            for part, peak in ledger.items():
                more = " | ".join(f"{other[part] - peak:+,}" for other in others)
                print(f"| `{scenario.id}` | {part} | {peak:,} | {more} |", flush=True)


if __name__ == "__main__":
    main()
