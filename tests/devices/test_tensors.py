"""Tensors are found as torch's own pytree finds them; what each takes are its parts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._pytree import tree_leaves, tree_map

from fixtures.devices.ledger import StorageLedger, resident_tensors
from fixtures.devices.tensors import leaves, mapped, stored_bytes, stored_tensors, tensors_in
from fixtures.records.run import WHOLE
from tests.support.packed import Packed, pack

ROWS, COLUMNS = 64, 128
PACKED_BYTES = ROWS * COLUMNS + ROWS * 4


def pipeline_of(model: torch.nn.Module) -> SimpleNamespace:
    """One model, as a pipeline has it."""
    return SimpleNamespace(unet=model, components={"unet": model})


@pytest.fixture
def layer() -> torch.nn.Linear:
    return torch.nn.Linear(COLUMNS, ROWS, bias=False)


def test_a_plain_tensor_takes_its_storage_and_a_wrapper_what_its_parts_take(
    layer: torch.nn.Linear,
) -> None:
    assert stored_tensors(layer.weight) == [layer.weight]
    assert stored_bytes(layer.weight) == ROWS * COLUMNS * 4
    weight = pack(layer).weight
    assert weight.nbytes == ROWS * COLUMNS * 4
    assert stored_bytes(weight) == PACKED_BYTES
    assert {part.dtype for part in stored_tensors(weight)} == {torch.int8, torch.float32}
    # A wrapper of a wrapper is taken apart to the end.
    scales: Any = Packed.of(torch.rand(ROWS, 1))
    outer = Packed(torch.ones(ROWS, COLUMNS, dtype=torch.int8), scales)
    assert stored_bytes(outer) == ROWS * COLUMNS + ROWS + ROWS * 4


class State:
    """As bitsandbytes keeps the scales of a weight, and the scales of those."""

    def __init__(self, absmax: torch.Tensor, state2: State | None = None) -> None:
        self.absmax, self.state2, self.blocksize = absmax, state2, 64


class Weight(torch.nn.Parameter):
    """A plain tensor with further ones beside it."""

    quant_state: State
    SCB: torch.Tensor


def test_scales_beside_a_weight_count() -> None:
    weight = Weight(torch.ones(10, dtype=torch.uint8), requires_grad=False)
    assert stored_bytes(weight) == 10
    weight.quant_state = State(torch.ones(2, dtype=torch.uint8), State(torch.ones(1)))
    assert stored_bytes(weight) == 10 + 2 + 4
    weight.SCB = torch.ones(3)
    assert stored_bytes(weight) == 10 + 2 + 4 + 12


def test_the_ledger_counts_the_parts_of_weights_and_of_results(layer: torch.nn.Linear) -> None:
    with StorageLedger(resident_tensors(pipeline_of(pack(layer)))) as ledger:
        pass
    assert ledger.component_peak_bytes[WHOLE] == PACKED_BYTES
    with StorageLedger() as ledger:
        copied = layer.weight.detach()
    assert ledger.component_peak_bytes[WHOLE] <= PACKED_BYTES
    assert stored_bytes(copied) == PACKED_BYTES


# Among an operation's arguments

LEAVES = st.none() | st.integers() | st.text(max_size=3)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(VALUES)
def test_they_are_walked_as_torch_walks_them(value: Any) -> None:
    assert leaves(value) == tree_leaves(value)
    assert mapped(repr, value) == tree_map(repr, value)


def test_tensors_are_found_and_named_tuples_keep_their_type() -> None:
    ones, most = torch.ones(2), torch.max(torch.eye(3), dim=0)
    assert tensors_in([ones, 3], {"x": (ones,)}, most) == [ones, ones, *most]
    doubled = mapped(lambda tensor: tensor * 2, most)
    assert type(doubled) is type(most)
    assert doubled.values.tolist() == [2, 2, 2]
