"""The CPU's ledger of storages, against hand-counted cases and against torch's own profiler."""

from __future__ import annotations

import contextlib
import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from fixtures.devices.ledger import StorageLedger, resident_tensors
from fixtures.records.counts import OPERATIONS
from fixtures.records.run import WHOLE
from fixtures.workloads import WORKLOADS

KIB = 1024


def test_the_peak_is_the_largest_sum_of_live_storages() -> None:
    with StorageLedger() as ledger:
        first = torch.zeros(KIB, dtype=torch.uint8)
        second = torch.zeros(2 * KIB, dtype=torch.uint8)
        del first
        third = torch.zeros(KIB // 2, dtype=torch.uint8)
    assert ledger.component_peak_bytes[WHOLE] == 3 * KIB
    assert ledger.live_bytes == second.nbytes + third.nbytes


def test_views_and_in_place_work_cost_nothing() -> None:
    tensor = torch.zeros(KIB, dtype=torch.uint8)
    with StorageLedger([tensor]) as ledger:
        view = tensor.view(2, -1)[1:]
        view.add_(1)
    assert ledger.component_peak_bytes[WHOLE] == KIB


def test_resident_weights_count_once_even_if_tied() -> None:
    tensor = torch.zeros(KIB, dtype=torch.uint8)
    with StorageLedger([tensor, tensor.view(-1), tensor]) as ledger:
        pass
    assert ledger.component_peak_bytes[WHOLE] == KIB


def test_each_component_has_its_own_peak() -> None:
    with StorageLedger() as ledger:
        ledger.enter_component("text_encoder")
        small = torch.zeros(KIB, dtype=torch.uint8)
        ledger.enter_component("vae")
        large = torch.zeros(4 * KIB, dtype=torch.uint8)
        del large
        ledger.enter_component("text_encoder")
        also = torch.zeros(KIB, dtype=torch.uint8)
    assert ledger.component_peak_bytes == {WHOLE: 5 * KIB, "text_encoder": 2 * KIB, "vae": 5 * KIB}
    assert small.nbytes == also.nbytes == KIB


def test_one_leaked_kibibyte_is_seen() -> None:
    kept = []

    def work(leak: bool) -> int:
        with StorageLedger() as ledger:
            for _ in range(3):
                tensor = torch.zeros(KIB, dtype=torch.uint8)
                if leak:
                    kept.append(tensor)
                del tensor
        return ledger.component_peak_bytes[WHOLE]

    assert work(leak=True) - work(leak=False) == 2 * KIB


def test_operations_are_counted_and_matrix_operations_by_their_dtype() -> None:
    square = torch.eye(4)
    with StorageLedger() as ledger:
        square @ square
        (square.bfloat16() @ square.bfloat16()).float()
    counts = ledger.counts()
    assert counts.operations == {"aten::mm": 2, "aten::_to_copy": 3}
    assert counts.totals == {OPERATIONS: 5}
    assert counts.compute_dtypes == {"float32": 1, "bfloat16": 1}


def test_operations_are_told_by_the_kind_of_module_that_called_them() -> None:
    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 4, bias=False)

        def forward(self, values: torch.Tensor) -> torch.Tensor:
            made: torch.Tensor = self.linear(values)
            return made + 1

    block, values = Block(), torch.zeros(1, 4)
    with torch.no_grad(), StorageLedger() as ledger:
        block(values)
        values + 1
    counts = ledger.counts()
    assert ledger.origins["aten::add in Block"] == 1
    assert ledger.origins["aten::mm in Block"] == 1  # not in Linear, which everything has
    assert ledger.origins["aten::add in the pipeline"] == 1
    assert ledger.origins.total() == counts.totals[OPERATIONS]


def test_a_module_that_raises_is_left() -> None:
    class Raising(torch.nn.Module):
        def forward(self) -> None:
            raise ValueError

    with StorageLedger() as ledger:
        with contextlib.suppress(ValueError):
            Raising()()
        torch.zeros(1)
    assert ledger.origins == {"aten::zeros in the pipeline": 1}


def test_the_collector_is_on_again_after_an_error() -> None:
    with pytest.raises(RuntimeError, match="size"), StorageLedger():
        torch.zeros(2) + torch.zeros(3)
    assert gc.isenabled()


def _decode(pipeline: Any) -> None:
    pipeline.vae.decode(torch.zeros(1, 4, 16, 16))


def _denoise(pipeline: Any) -> None:
    pipeline.unet(torch.zeros(2, 4, 16, 16), torch.tensor(1), torch.zeros(2, 77, 96))


@pytest.mark.parametrize("work", [_decode, _denoise])
def test_the_ledger_agrees_with_the_profiler_to_the_byte(
    work: Callable[[Any], None], tmp_path: Path
) -> None:
    """The profiler also sees scratch inside kernels (oneDNN's reordered weights).

    Scratch is what is made and freed within one operation that the ledger saw. Python numbers that
    torch wraps into tensors on the way belong to no operation. All else must agree.
    """
    pipeline = WORKLOADS["storybook"].load(torch.float32)
    with torch.no_grad():
        work(pipeline)
        gc.collect()
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
        ) as profile:
            work(pipeline)
        trace = tmp_path / "trace.json"
        profile.export_chrome_trace(str(trace))
        resident = StorageLedger(resident_tensors(pipeline)).live_bytes
        with StorageLedger(resident_tensors(pipeline)) as ledger:
            work(pipeline)
    events = json.loads(trace.read_text())["traceEvents"]
    peak = _profiled_peak(events, set(ledger.operations))
    assert ledger.component_peak_bytes[WHOLE] - resident == peak


def _profiled_peak(events: list[dict[str, Any]], seen: set[str]) -> int:
    """Peak of what outlives the operation that made it."""
    memory = sorted((e for e in events if e.get("name") == "[memory]"), key=lambda e: e["ts"])
    everything = [e for e in events if e.get("cat") == "cpu_op"]
    operations = [e for e in everything if e["name"] in seen]
    made: dict[int, int] = {}
    pairs: dict[int, int] = {}
    for number, event in enumerate(memory):
        address = event["args"]["Addr"]
        if event["args"]["Bytes"] > 0:
            made[address] = number
        elif address in made:
            pairs[made.pop(address)] = number
    scratch = {
        index
        for start, end in pairs.items()
        if any(_within(memory[start], o) and _within(memory[end], o) for o in operations)
        or not any(_within(memory[start], o) for o in everything)
        for index in (start, end)
    }
    live = peak = 0
    for number, event in enumerate(memory):
        if number not in scratch:
            live += event["args"]["Bytes"]
            peak = max(peak, live)
    return peak


def _within(event: dict[str, Any], operation: dict[str, Any]) -> bool:
    start: float = operation["ts"]
    at: float = event["ts"]
    return start <= at <= start + float(operation["dur"])
