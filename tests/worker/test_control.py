"""The control workload is frozen: what it computes changes with its version alone."""

from __future__ import annotations

import hashlib
import inspect
import io
import tokenize

import torch

from fixtures.worker.recording import CONTROL_VERSION
from fixtures.worker.timed import CONTROL_REPETITIONS, ControlWorkload

SOURCE = inspect.getsource(ControlWorkload)
WORK = {1: "05a3e391230d90ca"}
"""A digest of the code by version. Another digest needs another version, and new baselines."""
LAYOUT = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def work(source: str) -> str:
    """Digest of what is computed: its code without its words and its layout."""
    code, at_start = [], True
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT and not (at_start and token.type == tokenize.STRING):
            code.append(token.string)
        at_start = token.type in LAYOUT
    return hashlib.sha256(" ".join(code).encode()).hexdigest()[:16]


def test_what_is_computed_belongs_to_the_version() -> None:
    assert work(SOURCE) == WORK[CONTROL_VERSION]
    assert CONTROL_REPETITIONS == 120


def test_every_one_computes_with_the_same_numbers_and_a_call_leaves_nothing_behind() -> None:
    called, other = (ControlWorkload(torch.device("cpu"), repetitions=2) for _ in range(2))
    called()
    tensors = {
        name: value for name, value in vars(called).items() if isinstance(value, torch.Tensor)
    }
    assert len(tensors) == 4
    for name, tensor in tensors.items():
        assert torch.equal(tensor, getattr(other, name)), name
