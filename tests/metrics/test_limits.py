"""Which change of an exact figure is a verdict between two sides, and which only informs."""

from __future__ import annotations

import pytest

from fixtures.metrics import peak_memory
from fixtures.metrics.counts import COUNTS, HOST
from fixtures.metrics.limits import Limits
from fixtures.metrics.peak_memory import PEAK_MEMORY
from fixtures.records.counts import (
    BYTES_MOVED,
    COMPUTE,
    COPIES_TO_HOST,
    EMPTY_CACHE,
    FLOPS,
    HOST_CALLS,
    OPERATIONS,
    SYNCS,
)
from fixtures.records.units import GIB, MIB

STEPS = 3
MATERIAL = Limits(steps=STEPS)
THRESHOLDS = {
    PEAK_MEMORY.name: peak_memory.THRESHOLD,
    **{row.kind: row.between for row in (*COUNTS.rows, *HOST.rows)},
}


@pytest.mark.parametrize(
    ("name", "base", "limit"),
    [
        (PEAK_MEMORY.name, 10 * GIB, 0.005 * 10 * GIB),
        (PEAK_MEMORY.name, 1 * GIB, 8 * MIB),
        (PEAK_MEMORY.name, 30 * MIB, 0.02 * 30 * MIB),
        (BYTES_MOVED, GIB, 0.01 * GIB),
        (FLOPS, 1000, 10),
        (OPERATIONS, 5000, 50),
        (COMPUTE, 0, 0),
        (SYNCS, 40, STEPS - 1),
        (COPIES_TO_HOST, 0, STEPS - 1),
    ],
)
def test_each_metric_has_the_limit_that_is_documented(name: str, base: int, limit: float) -> None:
    assert MATERIAL.of(THRESHOLDS[name], base) == pytest.approx(limit)


def test_the_runtime_s_calls_are_material_in_every_step() -> None:
    assert MATERIAL.of(THRESHOLDS[EMPTY_CACHE], 0, 1) == 0
    assert MATERIAL.of(THRESHOLDS[EMPTY_CACHE], 0, STEPS) == STEPS - 1
    assert MATERIAL.of(THRESHOLDS[HOST_CALLS], 100, 1) == 10
    assert MATERIAL.of(THRESHOLDS[HOST_CALLS], 1000, 1) == 50
