"""The documents' table beside ours: measured, a floor, or the reason why there is none."""

from __future__ import annotations

from typing import Any

from fixtures.report.documented import Documented, documented
from fixtures.report.record import ScenarioRecord
from fixtures.statistics import Interval


def record(technique: str, ratio: float | None, **figures: Any) -> ScenarioRecord:
    made = ScenarioRecord(f"sd15-{technique}", "sd15", technique, "precision", ratio)
    for name, value in figures.items():
        setattr(made, name, value)
    return made


def test_measured_ratios_stand_beside_the_documented_ones_in_their_order() -> None:
    found = documented(
        [
            record("fp32", 1.0),
            record("xformers", 3.61, unsupported="no kernels"),
            record("fp16", 2.63, speedup=Interval(2.5, 2.4, 2.6)),
            record("sdpa", None, speedup=Interval(9.0, 9.0, 9.0)),
        ]
    )
    assert found == {
        "sd15": [
            Documented("fp16", 2.63, "measured", "x2.50 [2.40, 2.60]"),
            Documented("xformers", 3.61, "none", "unsupported: no kernels"),
        ]
    }


def test_a_simulated_device_has_floors() -> None:
    found = documented([record("fp32", 1.0, floor_ms=10.0), record("fp16", 2.63, floor_ms=4.0)])
    assert found == {"sd15": [Documented("fp16", 2.63, "floor", "x2.50")]}


def test_a_workload_of_which_nothing_was_measured_is_left_out() -> None:
    assert documented([record("fp16", 2.63), record("tf32", 1.5, unsupported="CUDA")]) == {}
