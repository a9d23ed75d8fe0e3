"""The CPU's ledger of storages, against hand-counted cases."""

from __future__ import annotations

import contextlib
import gc

import pytest
import torch

from fixtures.devices.ledger import StorageLedger
from fixtures.records.counts import COMPUTE, OPERATIONS, Counts
from fixtures.records.run import WHOLE
from tests.support.counting import operations_of

KIB = 1024


def test_the_peak_is_the_largest_sum_of_live_storages() -> None:
    weight = torch.zeros(KIB, dtype=torch.uint8)
    with StorageLedger([weight, weight.view(2, -1), weight]) as ledger:
        first = torch.zeros(KIB, dtype=torch.uint8)
        second = torch.zeros(2 * KIB, dtype=torch.uint8)
        del first
        third = torch.zeros(KIB // 2, dtype=torch.uint8)
    assert ledger.component_peak_bytes[WHOLE] == 4 * KIB
    assert ledger.live_bytes == weight.nbytes + second.nbytes + third.nbytes


def test_views_and_in_place_work_cost_nothing() -> None:
    tensor = torch.zeros(KIB, dtype=torch.uint8)
    with StorageLedger([tensor]) as ledger:
        view = tensor.view(2, -1)[1:]
        view.add_(1)
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


def test_operations_are_counted_and_matrix_operations_by_their_dtype() -> None:
    square = torch.eye(4)
    with StorageLedger() as ledger:
        square @ square
        (square.bfloat16() @ square.bfloat16()).float()
    counts = Counts.of(ledger.tally)
    assert counts.by_name(OPERATIONS) == {"aten::mm": 2, "aten::_to_copy": 3}
    assert counts.by_name(COMPUTE) == {"float32": 1, "bfloat16": 1}


def test_operations_are_told_by_the_kind_of_module_that_called_them() -> None:
    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 4, bias=False)

        def forward(self, values: torch.Tensor) -> torch.Tensor:
            made: torch.Tensor = self.linear(values)
            return made + 1

    class Raising(torch.nn.Module):
        def forward(self) -> None:
            raise ValueError

    block, values = Block(), torch.zeros(1, 4)
    with torch.no_grad(), StorageLedger() as ledger:
        block(values)
        with contextlib.suppress(ValueError):
            Raising()()
        values + 1
    assert operations_of(Counts.of(ledger.tally)) == {
        "aten::t in Block": 1,
        "aten::mm in Block": 1,  # not in Linear, which everything has
        "aten::add in Block": 1,
        "aten::add in the pipeline": 1,
    }


def test_the_collector_is_on_again_after_an_error() -> None:
    with pytest.raises(RuntimeError, match="size"), StorageLedger():
        torch.zeros(2) + torch.zeros(3)
    assert gc.isenabled()
