"""Tolerances fit together: wider elsewhere, and an error that all scenarios of a run share."""

from __future__ import annotations

import pytest

from fixtures.metrics.latency import (
    CONTROL_TOLERANCE,
    FP32_TOLERANCE,
    MAX_SAMPLES,
    RATIO_TOLERANCE,
    REGRESSION_ERROR,
    RUN_ERROR,
    regression_error,
)
from fixtures.verdicts.margin import Tolerance


@pytest.mark.parametrize("tolerance", [RATIO_TOLERANCE, FP32_TOLERANCE, CONTROL_TOLERANCE])
def test_every_tolerance_is_wider_elsewhere_and_has_a_reason(tolerance: Tolerance) -> None:
    for margin in (tolerance.same, tolerance.other_hardware):
        assert 0 < margin.regression <= margin.pass_bound
    assert tolerance.same.regression < tolerance.other_hardware.regression
    assert tolerance.same.pass_bound < tolerance.other_hardware.pass_bound
    assert len(tolerance.reason) > 20


@pytest.mark.parametrize("comparisons", [0, 1, 10, 11, 16, 300])
def test_neither_a_scenario_nor_a_run_errs_more_often_than_stated(comparisons: int) -> None:
    each = regression_error(comparisons) * MAX_SAMPLES
    assert each <= REGRESSION_ERROR * (1 + 1e-12)
    assert each * comparisons <= RUN_ERROR * (1 + 1e-12)
    assert each == pytest.approx(min(REGRESSION_ERROR, RUN_ERROR / max(1, comparisons)))
