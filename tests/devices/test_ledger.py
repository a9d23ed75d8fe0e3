"""The CPU's ledger of storages, against hand-counted cases."""

from __future__ import annotations

import contextlib

import torch

from fixtures.devices.ledger import StorageLedger
from fixtures.records.counts import COMPUTE, OPERATIONS, Counts
from fixtures.records.run import WHOLE
from tests.support.counting import operations_of

KIB = 1024


def test_each_component_has_its_own_peak_the_largest_sum_of_live_storages() -> None:
    """Views and work in place cost nothing."""
    weight = torch.zeros(KIB, dtype=torch.uint8)
    with StorageLedger([weight, weight.view(2, -1), weight]) as ledger:
        ledger.enter_component("text_encoder")
        small = torch.zeros(KIB, dtype=torch.uint8)
        view = small.view(2, -1)[1:]
        view.add_(1)
        ledger.enter_component("vae")
        large = torch.zeros(4 * KIB, dtype=torch.uint8)
        del large
        ledger.enter_component("text_encoder")
        also = torch.zeros(KIB, dtype=torch.uint8)
    assert ledger.component_peak_bytes == {WHOLE: 6 * KIB, "text_encoder": 3 * KIB, "vae": 6 * KIB}
    assert ledger.live_bytes == weight.nbytes + small.nbytes + also.nbytes


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
