"""A run of a pipeline that the suite has no workload for, by `--perf-weights` alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.records.run import RESULTS
from tests.support.configurations import write_pipeline
from tests.support.running import run_suite

SIMULATED = ("--perf-device", "simulated")


@pytest.mark.long
def test_a_folder_of_configurations_is_recorded_and_then_judged(tmp_path: Path) -> None:
    folder = write_pipeline("DDIMPipeline", tmp_path / "faces")
    options = (*SIMULATED, f"--perf-weights={folder}", f"--perf-baselines={tmp_path / 'mine'}")
    report = tmp_path / "report"
    record = ("--perf-update-baselines", "--perf-reason", "first record")
    recorded = run_suite(*options, "-k", "[faces-fp16] or [faces-fp32]", *record)
    assert recorded.returncode == pytest.ExitCode.OK, recorded.stdout
    (stored,) = (tmp_path / "mine" / "simulated").glob("*.json")
    assert stored.name.startswith("faces@faces-")
    judged = run_suite(*options, "-k", "[faces-fp32] or orphan", f"--perf-report={report}")
    assert judged.returncode == pytest.ExitCode.OK, judged.stdout
    assert "1 judged: 1 passed" in judged.stdout
    assert RESULTS.read(report / "results.json").weights == str(folder)
