"""A side that measures nothing: `python -m tests.support.fake_side KIND` speaks the protocol.

`KIND` is `sound`, or how it fails: `import`, `crash`, `hang`, `garble`, `refuse`; or how its
figures differ: `more` memory, operations and host calls, `less` of all, `white` images, `slow`
rounds; or what becomes of a scenario: `absent` where it is unsupported, `idle` where the technique
is not in effect, `broken` where it fails, `untimed` where its rounds fail; or `elsewhere`, on
another device.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from fixtures.commands.compare.messages import (
    OPENING,
    REQUEST,
    RESPONSE,
    Failure,
    Opened,
    Placed,
    Recording,
    Request,
    Response,
)
from fixtures.measuring.recording import record_of
from fixtures.measuring.rounds import Plan, Round
from fixtures.records.counts import FLOPS, OPERATIONS, Counts
from fixtures.records.outcome import Outcome
from fixtures.records.run import RunRecord
from fixtures.records.timing import Evidence
from fixtures.scenarios import find_scenario
from tests.support.runs import MIB, host_work

COMMAND = [sys.executable, "-m", "tests.support.fake_side"]
ROUND_S = 0.1
FAILURES = {
    "absent": Failure(Outcome.UNSUPPORTED, "needs diffusers 0.33 or later, this is 0.30.0"),
    "broken": Failure(Outcome.BROKEN, "it does not work"),
    "idle": Failure(Outcome.NOT_ACTIVE, "it does not work"),
}


def empty_run(kind: str) -> RunRecord:
    return RunRecord(
        device_key="fake-other" if kind == "elsewhere" else "fake",
        hardware={"processor": "Testron 9000"},
        software={"diffusers": "0.42.1" if kind == "sound" else "0.43.0"},
    )


def opened(kind: str) -> Opened | Failure:
    if kind == "refuse":
        return Failure(Outcome.BROKEN, "no such accelerator")
    return Opened("cpu", "replay", has_clock=True, shares_core=False, run=empty_run(kind))


def recording(kind: str, request: Request, folder: Path) -> Recording | Failure:
    scenario = find_scenario(request.workload, request.technique)
    if kind in FAILURES and not scenario.is_reference:
        return FAILURES[kind]
    run = empty_run(kind)
    record = record_of(run, scenario)
    more = {"more": 1, "less": -1}.get(kind, 0)
    peak = 512 * MIB + more
    record.component_peak_bytes = {"whole": peak, "vae": peak, "denoiser": MIB}
    record.counts = Counts(
        {OPERATIONS: 14 + more, FLOPS: 9}, {"aten::mm": 10 + more, "aten::add": 4}
    )
    record.host_work = host_work(600 + 50 * more)
    path = folder / f"{scenario.id}.npy"
    np.save(path, np.ones((1, 16, 16, 3)) if kind == "white" else noise())
    return Recording(run, Plan(groups=2, pairs=2), str(path))


def noise() -> Any:
    return np.random.default_rng(0).random((1, 16, 16, 3))


def timed(kind: str, request: Request) -> Placed | Round | Evidence | Failure | None:
    if request.action == "place":
        return Placed(os.getpid())
    if request.action == "evidence":
        return Evidence(load=0.5, steal=0.0, cpu_share=0.4)
    if request.action != "round":
        return None
    if kind == "untimed":
        return FAILURES["broken"]
    round_s = ROUND_S * (1.1 if kind == "slow" else 1.0)
    return Round(round_s, 2 * round_s)


def response(kind: str, request: Request, folder: Path) -> Response:
    if request.technique == "bf16":
        if kind == "crash":
            print("first", "the last thing it said", sep="\n", file=sys.stderr, flush=True)
            sys.exit(3)
        if kind == "hang":
            time.sleep(600)
        if kind == "garble":
            return Response(Round(1.0, 1.0))
    if request.action == "record":
        return Response(recording(kind, request, folder))
    return Response(timed(kind, request))


def main(kind: str) -> None:
    if kind == "import":
        raise ImportError("cannot import name 'FLAX_WEIGHTS_NAME'")
    folder = Path(OPENING.load(sys.stdin.readline(), "the first line").folder)
    print(RESPONSE.dump(Response(opened(kind))), flush=True)
    for line in sys.stdin:
        print(RESPONSE.dump(response(kind, REQUEST.load(line, "a line"), folder)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
