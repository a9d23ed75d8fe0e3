"""Lists, tuples and mappings of tensors are walked as torch's own pytree walks them."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._pytree import tree_leaves, tree_map

from fixtures.devices.arguments import leaves, mapped, tensors_in

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
