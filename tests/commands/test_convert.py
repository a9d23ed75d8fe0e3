"""A baseline of an earlier schema, converted: every figure is the one it was."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fixtures.records.baselines import BaselineError, read_baseline
from fixtures.records.compilation import (
    BREAKS,
    FIRST,
    GRAPHS,
    GUARDS,
    RECOMPILATIONS,
    RUNS,
)
from fixtures.records.counts import (
    COMPONENT_CALLS,
    COMPUTE,
    COPIES_TO_HOST,
    FLOPS,
    HOST_CALLS,
    OPERATIONS,
    STANDARD_CALLS,
    SYNCS,
    TORCH_CALLS,
    Row,
)
from fixtures.settings import REPOSITORY
from tests.support.runs import RECORDED, SOFTWARE

PLACE = "diffusers/schedulers/x.py:step"
STORED: dict[str, Any] = {
    "component_peak_bytes": {"whole": 7},
    "counts": {
        "totals": {
            "operations": 5,
            "flops": 9,
            "synchronisations": 2,
            "copies to the host": 1,
            "bytes copied to the host": 64,
            "copies to the device": 0,
        },
        "operations": {"aten::mm": 3, "aten::add": 2},
        "compute_dtypes": {"float16": 3},
        "sync_places": {f"{PLACE} (copy to the host)": 2},
        "copy_places": {f"{PLACE} (to the host)": 1},
        "copy_bytes": {f"{PLACE} (to the host)": 64},
    },
    "origins": {"aten::mm in Linear": 3, "aten::add": 2},
    "figures": {"component calls": {"denoiser (batch of 2)": 4}},
    "host_work": {
        "python": "3.11",
        "steps": 3,
        "call": {
            "packages": {
                "diffusers": {"functions": 10, "builtins": 5, "standard": 2},
                "torch": {"functions": 7, "builtins": 0, "standard": 0},
            },
            "functions": {"diffusers/a.py": {"f": 15}, "torch/b.py": {"g": 7}},
            "runtime": {"empty_cache": 3},
        },
        "step": {
            "packages": {"diffusers": {"functions": 4, "builtins": 0, "standard": 0}},
            # Of another call: they are more than the package has.
            "functions": {"diffusers/a.py": {"f": 4, "h": 9}},
            "runtime": {"empty_cache": 1},
        },
    },
    "latency": [],
    "ssim": 0.5,
    "recorded": {"date": "2026-01-31", "commit": "", "software": SOFTWARE, "reason": "test"},
}

COMPILED: dict[str, Any] = {
    "counts": {
        "graphs": 2,
        "graph breaks": 0,
        "graph runs": 14,
        "graph breaks (wider)": 1,
        "graph runs (wider)": 0,
        "recompilations (wider)": 1,
    },
    "causes": {
        "graphs": ["0/0: a guard"],
        "graph breaks (wider)": ["a reason at a.py:1"],
        # The last one is compiled no more: that is the break.
        "recompilations (wider)": ["0/1: a guard", "0/2: another one"],
    },
    "first_call_s": 4.0,
    "relative": [50.0],
    "software": {**SOFTWARE, "torch": "2.13.0+cpu"},
    "reason": "compiled",
}


def convert(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fixtures.commands.convert", str(folder)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_older_baseline_names_the_command_that_keeps_every_figure(tmp_path: Path) -> None:
    path = tmp_path / "cpu" / "storybook.json"
    path.parent.mkdir()
    document = {
        "schema": 3,
        "workload": "storybook",
        "device": "cpu",
        "scenarios": {
            "fp16": {name: v for name, v in STORED.items() if name != "latency"},
            "compiled": {
                "component_peak_bytes": {},
                "recorded": STORED["recorded"],
                "counts": {"totals": {"flops": 9}},
                "ssim": None,
                "compilation": COMPILED,
            },
        },
    }
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(BaselineError, match="convert it with"):
        read_baseline(path, device_key="cpu", workload="storybook")
    assert "storybook.json: converted" in convert(tmp_path).stdout
    scenarios = read_baseline(path, device_key="cpu", workload="storybook").scenarios
    entry, compiled = scenarios["fp16"], scenarios["compiled"]
    assert (entry.ssim, entry.component_peak_bytes) == (0.5, {"whole": 7})
    assert entry.recorded.reason == RECORDED.reason
    counts = entry.counts
    assert {row: number.in_all for row, number in counts.rows.items() if number.in_all} == {
        Row(OPERATIONS, "aten::mm", "Linear"): 3,
        Row(OPERATIONS, "aten::add"): 2,
        Row(FLOPS): 9,
        Row(COMPUTE, "float16"): 3,
        Row(SYNCS, "copy to the host", PLACE): 2,
        Row(COPIES_TO_HOST, "", PLACE): 1,
        Row("bytes copied to the host", "", PLACE): 64,
        Row(COMPONENT_CALLS, "denoiser (batch of 2)"): 4,
        Row(HOST_CALLS, "f", "diffusers/a.py"): 15,
        Row(TORCH_CALLS, "g", "torch/b.py"): 7,
        Row(STANDARD_CALLS, "diffusers"): 2,
        Row("empty_cache"): 3,
    }
    assert "copies to the device" in counts.kinds, "counted, and none"
    assert (counts.step_total(HOST_CALLS), counts.step_total("empty_cache")) == (4, 1)
    assert (counts.python, counts.host_steps) == ("3.11", 3)
    assert entry.compiled is None
    assert {row: number.in_all for row, number in compiled.counts.rows.items()} == {
        Row(FLOPS): 9,
        Row(GRAPHS): 2,
        Row(BREAKS, FIRST): 0,
        Row(BREAKS, "wider"): 0,
        Row(BREAKS, "wider", "a reason at a.py:1"): 1,
        Row(RUNS, FIRST): 14,
        Row(RUNS, "wider"): 0,
        Row(RECOMPILATIONS, "wider"): 1,
        Row(GUARDS, FIRST, "0/0: a guard"): 1,
        Row(GUARDS, "wider", "0/1: a guard"): 1,
        Row(GUARDS, "wider", "0/2: another one"): 1,
    }
    assert compiled.counts.torch == "2.13"
    assert compiled.compiled == replace(
        RECORDED, commit="", software=COMPILED["software"], reason="compiled"
    )
    before = path.read_bytes()
    assert "left as it is" in convert(tmp_path).stdout
    assert path.read_bytes() == before


def test_a_file_that_cannot_be_read_is_left_and_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text('{"schema": 3}', encoding="utf-8")
    done = convert(tmp_path)
    assert done.returncode == 1
    assert f"{path}: not converted, nothing was changed" in done.stderr
    assert path.read_text(encoding="utf-8") == '{"schema": 3}'
