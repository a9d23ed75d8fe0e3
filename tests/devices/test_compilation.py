"""What is counted of compiled code: small modules whose graphs, breaks and kernels are known."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
import torch
from torch import nn
from torch._inductor.scheduler import Scheduler

from fixtures.devices import compilation
from fixtures.devices.compilation import GraphBreakError, allocated_bytes, compilation_counter
from fixtures.records import counts as kinds
from fixtures.records.counts import Counts

FIRST, SECOND, THIRD = "first", "second", "third"
SIZE = 16


class Block(nn.Module):
    """A linear layer and operations by element, between which `between` is called."""

    def __init__(self, between: Callable[[torch.Tensor], torch.Tensor] = torch.sin) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(SIZE, SIZE)
        self.between = between

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Of shape (n, `SIZE`)."""
        return torch.cos(self.between(torch.relu(self.linear(values)) + 1))


def counted(module: nn.Module, *sizes: int, fullgraph: bool = False) -> Counts:
    """What calls count, with a batch of each size; all draw what they draw uncompiled."""
    inputs = [torch.arange(size * SIZE, dtype=torch.float32).view(size, SIZE) for size in sizes]
    with torch.no_grad():
        expected = [module(values) for values in inputs]
        with compilation_counter() as counter:
            module.compile(fullgraph=fullgraph)
            for name, values, wanted in zip((FIRST, SECOND, THIRD), inputs, expected, strict=False):
                with counter.call(name):
                    torch.testing.assert_close(module(values), wanted)
    return counter.counts


def causes(counts: Counts, kind: str) -> list[tuple[str, str]]:
    """Calls and what is told of them."""
    rows = sorted(row for row, n in counts.rows.items() if row.kind == kind and n.in_all)
    return [(row.name, row.place) for row in rows]


@torch.compiler.disable  # type: ignore[untyped-decorator]
def eager(values: torch.Tensor) -> torch.Tensor:
    return torch.sin(values)


def test_a_graph_is_counted_as_inductor_makes_it_and_compiled_by_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[Any] = []
    popen = subprocess.Popen.__init__

    def noted(self: Any, command: Any, *arguments: Any, **options: Any) -> None:
        started.append(command)
        popen(self, command, *arguments, **options)

    monkeypatch.setattr(subprocess.Popen, "__init__", noted)
    counts = counted(Block(), 4, 4, 8, fullgraph=True)
    # One product, and all that follows it in one kernel; of later calls, nothing is lowered.
    once = {
        kinds.GRAPHS: 1,
        kinds.CAPTURED: 5,
        kinds.EXTERN: 1,
        kinds.KERNELS: 1,
        kinds.NODES: 2,
        kinds.BUFFERS: 4 * SIZE * 4,
    }
    assert {kind: counts.total(kind) for kind in once} == once
    assert counts.by_name(kinds.RUNS) == {FIRST: 1, SECOND: 1, THIRD: 1}
    assert counts.by_name(kinds.BREAKS) == {FIRST: 0, SECOND: 0, THIRD: 0}
    assert counts.by_name(kinds.RECOMPILATIONS) == {SECOND: 0, THIRD: 1}
    guard = "0/0: tensor 'values' size mismatch at index 0. expected 4, actual 8"
    assert causes(counts, kinds.GUARDS) == [(THIRD, guard)]
    assert all("--version" in command for command in started), started


def test_a_break_is_told_with_its_reason_and_line() -> None:
    line = Block.forward.__code__.co_firstlineno + 2
    counts = counted(Block(eager), 4, 4)
    assert (counts.total(kinds.GRAPHS), counts.by_name(kinds.RUNS)) == (2, {FIRST: 2, SECOND: 2})
    cause = f"Skip calling `torch.compiler.disable()`d function at test_compilation.py:{line}"
    assert causes(counts, kinds.BREAKS) == [(FIRST, cause)], "each break is told once"
    with pytest.raises(GraphBreakError, match=re.escape(cause)):
        counted(Block(eager), 4, fullgraph=True)


def test_a_lost_fusion_is_more_nodes_that_stay_apart() -> None:
    def softmax(values: torch.Tensor) -> torch.Tensor:
        return torch.softmax(values, dim=-1)

    def by_a_library(values: torch.Tensor) -> torch.Tensor:
        return torch.sort(torch.exp(values))[0]

    fused = counted(Block(softmax), 4)
    with mock.patch.object(Scheduler, "can_fuse", return_value=False):
        unfused = counted(Block(softmax), 4)
    assert (
        unfused.total(kinds.NODES)
        == fused.total(kinds.NODES)
        == unfused.total(kinds.FUSED)
        > fused.total(kinds.FUSED)
    )
    assert counted(Block(by_a_library), 4).total(kinds.EXTERN) > fused.total(kinds.EXTERN)


def test_what_falls_back_to_eager_runs_no_graph() -> None:
    with torch._dynamo.config.patch(recompile_limit=1):
        assert counted(Block(), 4, 8, 9).by_name(kinds.RUNS) == {FIRST: 1, SECOND: 0, THIRD: 0}


@pytest.mark.parametrize(
    ("code", "size"),
    [
        ("buf0 = empty_strided_cuda((2, 3), (8, 1), torch.bfloat16)", 22),  # to its last element
        ("buf0 = empty_strided_cpu((), (), torch.int64)", 8),
        ("buf0 = empty_strided_cpu((s0, 3), (3, 1), torch.float32)", 0),  # no fixed size
        ("b = empty_strided_cpu((5, ), (1, ), torch.bool)\n" * 2, 10),
    ],
)
def test_buffers_are_read_from_the_generated_code(code: str, size: int) -> None:
    assert allocated_bytes(code) == size


def test_a_whole_graph_that_is_compiled_too_often_is_a_break_and_paths_are_not_told() -> None:
    with torch._dynamo.config.patch(recompile_limit=1):
        counts = counted(Block(), 4, 8, fullgraph=True)
    ((call, cause),) = causes(counts, kinds.BREAKS)
    assert call == SECOND
    assert cause.startswith("compiled anew more often than torch allows at ")
    reason = (
        "0/1: flag == True # if flag: User stack trace: File '/home/me/x.py', line 7, at 0x7f00"
    )
    assert compilation._sentence(reason) == "0/1: flag == True # if flag:"
    assert compilation._sentence("held by 140462015041104 at 0x7f00ab") == "held by ... at ..."


def test_options_of_inductor_count_a_graph_once_and_errors_of_the_program_are_its_own() -> None:
    with torch.no_grad(), compilation_counter() as counter:
        compiled = torch.compile(Block(), options={"max_autotune": False})
        with counter.call(FIRST):
            compiled(torch.ones(4, SIZE))
        assert (counter.counts.total(kinds.GRAPHS), counter.counts.total(kinds.CAPTURED)) == (1, 5)

        def wrong(values: torch.Tensor) -> torch.Tensor:
            raise ValueError("of the program")

        broken = Block(wrong)
        broken.compile(fullgraph=True)
        with pytest.raises(torch._dynamo.exc.Unsupported), counter.call(SECOND):
            broken(torch.ones(4, SIZE))


def test_a_graph_that_dynamo_then_captures_anew_is_counted_twice() -> None:
    def clamped(values: torch.Tensor, limit: float) -> torch.Tensor:
        return torch.clamp(values, max=limit)  # no tensor can be this number, as was hoped at first

    with torch.no_grad(), compilation_counter() as counter:
        compiled = torch.compile(clamped, dynamic=True, fullgraph=True)
        with counter.call(FIRST):
            compiled(torch.ones(4, SIZE), 1.5)
    assert (counter.counts.total(kinds.GRAPHS), counter.counts.by_name(kinds.RUNS)) == (
        2,
        {FIRST: 1},
    )
