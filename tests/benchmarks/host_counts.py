"""Does the host's work repeat, and what does it cost: `python -m tests.benchmarks.host_counts`.

Fresh processes observe the same scenarios, each in another order, every fourth one beside a load on
all cores; on the simulated device a run of the suite in two workers of pytest-xdist comes on top.
Every figure must be the same in all of them, down to the calls of every function. Every fourth one,
without load, observes each scenario without counting too, which tells the cost.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from fixtures.devices import host_calls, open_device
from fixtures.devices.kinds import DEFAULT_PROFILE
from fixtures.measuring import observation
from fixtures.records.host_work import HostWork
from fixtures.records.run import RESULTS
from fixtures.scenarios import find_scenario
from fixtures.settings import REPOSITORY
from fixtures.studies.power.load import load

SCENARIOS: Final[Mapping[str, Sequence[tuple[str, str]]]] = {
    "cpu": [
        ("storybook", technique)
        for technique in ("fp32", "bf16", "attention_slicing", "vae_slicing", "channels_last")
    ],
    "simulated": [
        ("sd15", "fp32"),
        ("sd15", "model_cpu_offload"),
        ("sd15", "sequential_cpu_offload"),
    ],
}
"""Workload and technique, by device."""
SPAWN: Final = multiprocessing.get_context("spawn")


class Seen(NamedTuple):
    """The host's work, and seconds of an observation with and, if that was asked, without it."""

    work: HostWork
    counted_s: float
    not_counted_s: float = 0.0


SeenById = dict[str, Seen]
"""By scenario."""


class _NotCounted:
    """Stands where the counter stands, and lets nothing be reported."""

    marks_s: Sequence[float] = ()

    def __enter__(self) -> _NotCounted:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing is open."""

    def work(self, telling: int | None = None) -> HostWork:
        """Nothing."""
        return HostWork()


def _observe_all(device_key: str, seed: int, with_cost: bool) -> SeenById:
    """What a fresh process sees, in an order of its own."""
    device = open_device(device_key, DEFAULT_PROFILE)
    order = list(SCENARIOS[device_key])
    random.Random(seed).shuffle(order)
    if with_cost:
        observation.observe(find_scenario(*order[0]), device)  # imports, once for all
    counting, seen = host_calls.HostCallCounter, {}
    for workload, technique in order:
        scenario = find_scenario(workload, technique)
        took_s = []
        for how in (counting, lambda *_, **__: _NotCounted())[: 2 if with_cost else 1]:
            host_calls.HostCallCounter = how  # type: ignore[misc, assignment]
            start_s = time.perf_counter()
            observed = observation.observe(scenario, device)
            took_s.append(time.perf_counter() - start_s)
            if how is counting:
                work = observed.host_work
        seen[scenario.id] = Seen(work, *took_s)
    return seen


def _in_fresh_process(device_key: str, seed: int, *, with_cost: bool = False) -> SeenById:
    with ProcessPoolExecutor(1, mp_context=SPAWN) as pool:
        return pool.submit(_observe_all, device_key, seed, with_cost).result()


def _in_workers(device_key: str) -> dict[str, HostWork]:
    """The same of a run of the suite in two workers."""
    names = " or ".join(
        f"[{workload}-{technique}]" for workload, technique in SCENARIOS[device_key]
    )
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "perf_tests", "-q", "-n", "2", "-k", names),
                *("--perf-device", device_key, "--perf-report", folder),
            ],
            cwd=REPOSITORY,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        run = RESULTS.read(Path(folder) / "results.json")
    return {id_: record.host_work for id_, record in run.scenarios.items()}


def _seen_by(device_key: str, seed: int) -> SeenById:
    """What the process of this number sees."""
    with load() if seed % 4 == 1 else nullcontext():
        seen = _in_fresh_process(device_key, seed, with_cost=seed % 4 == 0)
    print(f"  {device_key}: process {seed}", file=sys.stderr)
    return seen


def _trial(device_key: str, processes: int, at_once: int) -> bool:
    """Print what was seen on one device; whether every process saw the same."""
    with ThreadPoolExecutor(at_once) as pool:
        by_process = list(pool.map(partial(_seen_by, device_key), range(processes)))
    alone = by_process[::4]
    seen = [{id_: each.work for id_, each in by_id.items()} for by_id in by_process]
    if device_key == "simulated":
        seen.append(_in_workers(device_key))
    equal = True
    for id_ in sorted(seen[0]):
        works = [by_id[id_] for by_id in seen]
        different = sum(work != works[0] for work in works)
        equal = equal and not different and bool(works[0])
        calls = sum(calls.functions + calls.builtins for calls in works[0].step.packages.values())
        counted_s = median(by_id[id_].counted_s for by_id in alone)
        not_counted_s = median(by_id[id_].not_counted_s for by_id in alone)
        bytecodes = sum(works[0].step.bytecodes.values())
        print(
            f"| `{id_}` | {device_key} | {calls:,} | {bytecodes:,} | "
            f"{len(works[0].call.functions)} | "
            f"{len(works)} | {different} | {not_counted_s:.2f} | {counted_s:.2f} | "
            f"{counted_s - not_counted_s:+.2f} |",
            flush=True,
        )
    return equal


def main() -> int:
    """Print a table of both devices; fails if any figure of any process differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=20)
    parser.add_argument("--device", choices=SCENARIOS, nargs="+", default=[*SCENARIOS])
    parser.add_argument(
        "--at-once", type=int, default=1, metavar="N", help="more than one spoils the cost"
    )
    options = parser.parse_args()
    print("| scenario | device | calls a step | bytecodes a step | functions | processes "
          "| different | not counted, s | counted, s | cost, s |")  # fmt: skip
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    equal = [_trial(key, options.processes, options.at_once) for key in options.device]
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())
