"""A side that measures nothing: `python tests/compare/fake_side.py KIND` speaks the protocol.

`KIND` is `sound`, or how it fails: `import`, `crash`, `hang`, `refuse`; or how it differs: `more`
memory and operations, `less` of both, `white` pictures, `slow` rounds, `idle` technique, `absent`
where the scenario is unsupported, `broken` where it fails, `elsewhere` on another device.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from fixtures.machine import Evidence
from fixtures.recording import Recorded, failed, record_of
from fixtures.report.record import RunRecord
from fixtures.scenarios import scenarios
from fixtures.verdicts import Outcome
from tests.records import MIB, entry

ROUND_S = 0.1


def opened(kind: str) -> dict[str, Any]:
    if kind == "refuse":
        return {"outcome": "broken", "failure": "no such accelerator"}
    return {
        "name": "cpu",
        "key": "fake-other" if kind == "elsewhere" else "fake",
        "hardware": {"processor": "Testron 9000"},
        "software": {"diffusers": "0.42.1" if kind == "sound" else "0.43.0"},
        "diffusers": "0.43.0",
        "missing": {"clock": None, "pictures": None},
        "memory_source": "replay",
    }


def recorded(kind: str, order: dict[str, Any], folder: Path) -> dict[str, Any]:
    found = {one.id: one for one in scenarios([order["workload"]])}
    scenario = found[f"{order['workload']}-{order['technique']}"]
    run = RunRecord(device_key="fake", software=opened(kind)["software"])
    record = record_of(run, scenario)
    fails = not scenario.is_reference
    if kind == "absent" and fails:
        record.unsupported = "needs diffusers 0.33 or later, this is 0.30.0"
        return {"recorded": Recorded(run).to_json(), "plan": None, "pictures": None}
    if kind in ("broken", "idle") and fails:
        outcome = Outcome.BROKEN if kind == "broken" else Outcome.NOT_ACTIVE
        done = failed(run, scenario, outcome, f"{scenario.id}: it does not work")
        return {"recorded": done.to_json(), "plan": None, "pictures": None}
    more = {"more": 1, "less": -1}.get(kind, 0)
    figures = entry(
        peak_memory_bytes={"whole": 512 * MIB + more, "vae": 512 * MIB + more, "denoiser": MIB},
        counters={"aten::mm": 10 + more, "aten::add": 4, "operations": 14 + more, "flops": 9},
    )
    record.peak_bytes = figures.peak_memory_bytes["whole"]
    picture = np.ones((1, 16, 16, 3)) if kind == "white" else noise()
    path = folder / f"{scenario.id}.npy"
    np.save(path, picture)
    return {
        "recorded": Recorded(run, figures).to_json(),
        "plan": {"groups": 2, "pairs": 2},
        "pictures": str(path),
    }


def noise() -> Any:
    return np.random.default_rng(0).random((1, 16, 16, 3))


def answer(kind: str, order: dict[str, Any], folder: Path) -> dict[str, Any]:
    if kind == "crash" and order.get("technique") == "bf16":
        print("first", "the last thing it said", sep="\n", file=sys.stderr, flush=True)
        sys.exit(3)
    if kind == "hang" and order.get("technique") == "bf16":
        time.sleep(600)
    if order["do"] == "record":
        return recorded(kind, order, folder)
    if order["do"] == "round":
        second = ROUND_S * (1.1 if kind == "slow" else 1.0)
        return {"busy_s": second, "wall_s": second, "disturbance": None}
    if order["do"] == "end":
        evidence = Evidence(load=0.5, steal=0.0, cpu_share=0.4)
        return {"evidence": vars(evidence)}
    return {}


def main(kind: str) -> None:
    if kind == "import":
        raise ImportError("cannot import name 'FLAX_WEIGHTS_NAME'")
    folder = Path()
    for number, line in enumerate(sys.stdin):
        order = json.loads(line)
        if number == 0:
            folder = Path(order["folder"])
            print(json.dumps(opened(kind)), flush=True)
        else:
            print(json.dumps(answer(kind, order, folder)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
