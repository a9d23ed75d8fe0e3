"""Tolerances fit together, and so does an error that all scenarios of a run share."""

from __future__ import annotations

import math

import pytest

from fixtures.metrics.latency_tolerances import (
    CONTROL_TOLERANCE,
    FP32_TOLERANCE,
    RATIO_TOLERANCE,
)
from fixtures.verdicts.decision import REGRESSION_ERROR, RUN_ERROR, regression_error
from fixtures.verdicts.margin import Tolerance
from fixtures.verdicts.statistics import MAX_SAMPLES


@pytest.mark.parametrize("tolerance", [RATIO_TOLERANCE, FP32_TOLERANCE, CONTROL_TOLERANCE])
def test_every_tolerance_is_wider_elsewhere_and_has_a_reason(tolerance: Tolerance) -> None:
    assert 0 < tolerance.margin.regression <= tolerance.margin.pass_bound
    assert tolerance.margin.pass_bound < tolerance.elsewhere
    assert len(tolerance.reason) > 20


@pytest.mark.parametrize("comparisons", [0, 1, 10, 11, 16, 300])
def test_neither_a_scenario_nor_a_run_errs_more_often_than_stated(comparisons: int) -> None:
    each = regression_error(comparisons) * MAX_SAMPLES
    assert each <= REGRESSION_ERROR * (1 + 1e-12)
    assert each * comparisons <= RUN_ERROR * (1 + 1e-12)
    assert each == pytest.approx(min(REGRESSION_ERROR, RUN_ERROR / max(1, comparisons)))


def test_samples_that_take_little_of_the_error_away_are_worth_few() -> None:
    at_once, some, whole = (regression_error(1, shrinks) for shrinks in (0.0, 0.2, 1.24))
    assert at_once == REGRESSION_ERROR
    assert whole == regression_error(1) == regression_error(1, math.nan) < some < at_once
