"""Documented speed-ups beside ours: measured, a bound, or the reason why there is none."""

from __future__ import annotations

from fixtures.records.timing import Interval
from fixtures.report.page import Documented, documented
from tests.support.runs import scenario_record


def test_measured_ratios_stand_beside_the_documented_ones_in_their_order() -> None:
    found = documented(
        [
            scenario_record("fp32", documented_speedup=1.0),
            scenario_record("xformers", documented_speedup=3.61, unsupported="no kernels"),
            scenario_record("tf32", documented_speedup=2.7),
            scenario_record("fp16", documented_speedup=2.63, speedup=Interval(2.5, 2.4, 2.6)),
            scenario_record("sdpa", speedup=Interval(9.0, 9.0, 9.0)),
        ]
    )
    assert found == {
        "storybook": [
            Documented("fp16", 2.63, "x2.50 [2.40, 2.60]"),
            Documented("tf32", 2.7, "not measured", has_figure=False),
            Documented("xformers", 3.61, "unsupported: no kernels", has_figure=False),
        ]
    }


def test_a_simulated_device_compares_roofline_bounds_of_the_same_workload() -> None:
    found = documented(
        [
            scenario_record("fp32", documented_speedup=1.0, bound_ms=99.0),
            scenario_record("fp32", workload="sd15", documented_speedup=1.0, bound_ms=10.0),
            scenario_record("fp16", workload="sd15", documented_speedup=2.63, bound_ms=4.0),
        ]
    )
    assert found == {"sd15": [Documented("fp16", 2.63, "x2.50 (roofline bound)")]}


def test_a_workload_without_a_figure_is_left_out() -> None:
    assert (
        documented(
            [
                scenario_record("fp16", documented_speedup=2.63),
                scenario_record("tf32", documented_speedup=1.5, unsupported="CUDA"),
            ]
        )
        == {}
    )
