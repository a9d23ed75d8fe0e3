"""Smaller calls and fewer samples than a measurement takes, and one scenario that does more."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any

from tests.rehearsal.machine import SLOW

STEPS, TIMED_STEPS = 2, 1
SAMPLES = GROUPS = 2
SIDE = 32
"""Pixels of an image."""
MORE = 600
"""Small operations in each step; the latency doubles, as the limit by two samples was 61 % once."""


def shorten_calls(workloads: ModuleType) -> None:
    """Let the workload take few steps, on a small image."""
    workload = workloads.WORKLOADS["storybook"]
    workload.call = replace(workload.call, steps=STEPS, width=SIDE, height=SIDE)
    workload.timed_steps, workload.representative_steps = TIMED_STEPS, STEPS


def leave_inference_mode(frozen: ModuleType) -> None:
    """Let the frozen program run under `no_grad`.

    In inference mode the simulation decomposes every operation and remembers no result.
    """
    torch = frozen.torch
    frozen.torch = SimpleNamespace(  # type: ignore[attr-defined]
        **{**vars(torch), "inference_mode": torch.no_grad}
    )


def take_few_samples(refreshing: ModuleType) -> None:
    """Let a baseline hold few processes."""
    refreshing.SAMPLES = SAMPLES  # type: ignore[attr-defined]


def plan_few_rounds(rounds: ModuleType) -> None:
    """Let a process take one round of the candidate between two of the reference, twice."""
    rounds.Plan.__init__.__defaults__ = (GROUPS, 1)


def slow_down(techniques: ModuleType) -> None:
    """Let the technique that the environment names do more in each step."""
    if SLOW not in os.environ:
        return
    catalogue = techniques.CATALOGUE.techniques
    technique = catalogue[os.environ[SLOW]]

    def slow(workload: Any, device: Any) -> Iterator[Any]:
        for pipeline in technique.apply(workload, device):
            pipeline.unet.register_forward_pre_hook(_more)
            yield pipeline

    catalogue[technique.id] = replace(technique, apply=slow)


def _more(module: Any, inputs: tuple[Any, ...]) -> None:
    for _ in range(MORE):
        inputs[0].neg()
