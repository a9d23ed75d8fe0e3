"""Comparisons of two releases on a GPU, by the real command on a machine without one."""

from __future__ import annotations

import pytest

from tests.rehearsal.commands import Machine
from tests.rehearsal.installer import SLOWER

pytest.importorskip("uv")

COMPARE = (
    *("-m", "fixtures.commands.compare", "--perf-device", "cuda", "--perf-workload", "storybook"),
    *("-k", "[storybook-fp16]", "--base", "diffusers==0.42.1", "--head"),
)


def test_a_side_that_does_more_is_found(machine: Machine) -> None:
    done = machine.python(*COMPARE, SLOWER)
    assert done.code == 1, done.said
    assert "latency" in done.said
    assert "kernel launches" in done.said
    # Two sides, and of each at least one process that was timed.
    assert len(done.users) >= 4
