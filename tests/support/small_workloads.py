"""The full-size workloads on small pipelines, built and run in a moment."""

from __future__ import annotations

from dataclasses import replace

from fixtures.catalogue.workloads import FULL_SIZE, WORKLOADS, Workload
from fixtures.catalogue.workloads.twins import SMALL, small_call

BY_DEFAULT = tuple(workload.name for workload in FULL_SIZE if workload.name in SMALL)
"""The names of those that run where no workload is named."""


def small_workload(name: str) -> Workload:
    """The workload with its twin's call and configurations, and the weights of its full size."""
    workload = WORKLOADS[name]
    return replace(workload, call=small_call(workload), source=SMALL[name])
