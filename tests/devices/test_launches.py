"""What the profiler's trace shows of a call, on traces written by hand and on a real one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fixtures.devices.cuda import CALL, COUNTED, launches_in, launches_of
from fixtures.records import counts as kinds
from fixtures.records.counts import Counts, Row


def event(category: str, name: str, at: float = 5.0, **arguments: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "ts": at, "dur": 1.0, "args": arguments}


SPAN = {**event("user_annotation", CALL, at=0.0), "dur": 10.0}


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (event("kernel", "sgemm_32x32"), {kinds.LAUNCHES: 1}),
        (event("gpu_memset", "Memset (Device)"), {kinds.FILLS: 1}),
        (
            event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", bytes=64),
            {kinds.COPIES_TO_DEVICE: 1, kinds.BYTES_TO_DEVICE: 64},
        ),
        (
            event("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", bytes=32),
            {kinds.COPIES_TO_HOST: 1, kinds.BYTES_TO_HOST: 32},
        ),
        (event("gpu_memcpy", "Memcpy DtoD (Device -> Device)", bytes=8), {kinds.COPIES_WITHIN: 1}),
        (event("cuda_runtime", "cudaStreamSynchronize"), {kinds.SYNCS: 1}),
        (event("cuda_runtime", "cudaEventSynchronize"), {kinds.SYNCS: 1}),
        (event("cuda_runtime", "cudaDeviceSynchronize", at=12.0), {}),  # the profiler's own
        (event("cuda_runtime", "cudaLaunchKernel"), {}),  # the kernel itself is counted
        (event("cpu_op", "aten::mm"), {}),
        ({"ph": "M", "name": "process_name"}, {}),
    ],
)
def test_each_event_counts_as_what_it_is(seen: dict[str, Any], expected: dict[str, int]) -> None:
    totals = launches_in([seen, SPAN])
    assert totals.kinds == set(COUNTED)
    assert {kind: totals.total(kind) for kind in COUNTED if totals.total(kind)} == expected


def test_a_trace_without_the_call_is_refused() -> None:
    with pytest.raises(ValueError, match="does not show"):
        launches_in([event("kernel", "gemm")])


def test_a_real_trace_is_understood() -> None:
    waited: list[str] = []

    def call() -> None:
        torch.ones(8).add(1)
        waited.append("call")

    counts = launches_of(call, lambda: waited.append("wait"))
    assert waited == ["wait", "call", "wait"]
    # A CPU launches no kernels: that the call was found is what this shows.
    assert counts == Counts.of({Row(kind): 0 for kind in COUNTED})
