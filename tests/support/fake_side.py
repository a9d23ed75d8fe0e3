"""Sides that measure nothing, in this process: `in_process` puts them in the place of real ones.

The interpreter of a side names its kind: `sound`, or how it fails: `import`, `crash`, `hang`,
`garble`, `refuse`; or how its figures differ: `more` memory, operations and host calls, `less` of
all, `white` images, `slow` rounds; or what becomes of a scenario: `absent` where it is unsupported,
`idle` where the technique is not in effect, `broken` where it fails, `untimed` where its rounds
fail; or `elsewhere`, on another device.
"""

from __future__ import annotations

import os
import queue
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fixtures.commands.compare import remote_side
from fixtures.commands.compare.messages import (
    OPENING,
    REQUEST,
    RESPONSE,
    Opened,
    Recording,
    Request,
    Response,
)
from fixtures.measuring.recording import record_of
from fixtures.measuring.rounds import Plan, Round
from fixtures.records.counts import FLOPS
from fixtures.records.outcome import Outcome, Verdict
from fixtures.records.run import RunRecord
from fixtures.records.timing import Evidence
from fixtures.scenarios import find_scenario
from tests.support.counting import counted, host_calls
from tests.support.runs import MIB, failure

ROUND_S = 0.1
FAILURES = {
    "absent": failure(Outcome.UNSUPPORTED, "needs diffusers 0.33 or later, this is 0.30.0"),
    "broken": failure(Outcome.BROKEN, "it does not work"),
    "idle": failure(Outcome.NOT_ACTIVE, "it does not work"),
}


def empty_run(kind: str) -> RunRecord:
    return RunRecord(
        device_key="fake-other" if kind == "elsewhere" else "fake",
        hardware={"processor": "Testron 9000"},
        software={"diffusers": "0.42.1" if kind == "sound" else "0.43.0"},
    )


def opened(kind: str) -> Opened | Verdict:
    if kind == "refuse":
        return failure(Outcome.BROKEN, "no such accelerator")
    return Opened("simulated", has_clock=True, shares_core=False, run=empty_run(kind))


def recording(kind: str, request: Request, folder: Path) -> Recording | Verdict:
    scenario = find_scenario(request.workload, request.technique)
    if kind in FAILURES and not scenario.is_reference:
        return FAILURES[kind]
    run = empty_run(kind)
    record = record_of(run, scenario)
    more = {"more": 1, "less": -1}.get(kind, 0)
    peak = 512 * MIB + more
    record.component_peak_bytes = {"whole": peak, "vae": peak, "denoiser": MIB}
    of_device = counted({FLOPS: 9}, {"aten::mm": 10 + more, "aten::add": 4})
    record.counts = of_device.beside(host_calls(600 + 50 * more))
    path = folder / f"{scenario.id}.npy"
    np.save(path, np.ones((1, 16, 16, 3)) if kind == "white" else noise())
    return Recording(run, Plan(groups=2, pairs=2), str(path))


def noise() -> Any:
    return np.random.default_rng(0).random((1, 16, 16, 3))


def timed(kind: str, request: Request) -> int | Round | Evidence | Verdict | None:
    if request.action == "place":
        return os.getpid()
    if request.action == "evidence":
        return Evidence(load=0.5, steal=0.0, cpu_share=0.4)
    if request.action != "round":
        return None
    if kind == "untimed":
        return FAILURES["broken"]
    round_s = ROUND_S * (1.1 if kind == "slow" else 1.0)
    return Round(round_s, 2 * round_s)


class FakeLineProcess:
    """A `LineProcess` of one kind, as which each scenario `bf16` responds."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self.kind = command[0]
        self.folder: Path | None = None

    def exchange(self, line: str, limit_s: float) -> str:
        """What it responds with."""
        return RESPONSE.dump(Response(self.content(line))) + "\n"

    def content(self, line: str) -> Any:
        if self.kind == "import":
            raise EOFError("code 1: ImportError: cannot import name 'FLAX_WEIGHTS_NAME'")
        if self.folder is None:
            self.folder = Path(OPENING.load(line, "the first line").folder)
            return opened(self.kind)
        request = REQUEST.load(line, "a line")
        if request.technique == "bf16":
            if self.kind == "crash":
                raise EOFError("code 3: the last thing it said")
            if self.kind == "hang":
                raise queue.Empty
            if self.kind == "garble":
                return Round(1.0, 1.0)
        if request.action == "draw":
            return FAILURES.get(self.kind)
        if request.action == "record":
            return recording(self.kind, request, self.folder)
        return timed(self.kind, request)

    def end(self, limit_s: float = 0.0) -> None:
        """Nothing to end."""


def in_process(patch: pytest.MonkeyPatch) -> None:
    """Let every side be a fake of the kind that its command begins with."""
    patch.setattr(remote_side, "LineProcess", FakeLineProcess)
