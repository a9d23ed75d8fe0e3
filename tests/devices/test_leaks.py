"""A call that leaves memory allocated is named with what holds it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from fixtures.devices.leaks import ALLOWED_BYTES, leak, still_alive
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.measurement import observe
from fixtures.scenarios import Scenario
from fixtures.techniques import CATALOGUE
from tests.running import run_suite
from tests.simulated_runs import small

CPU = torch.device("cpu")


class Pipeline:
    """A pipeline of one model."""

    def __init__(self) -> None:
        self.components = {"unet": torch.nn.Linear(3, 5)}


@pytest.mark.parametrize("leaked_bytes", [0, ALLOWED_BYTES])
def test_what_is_next_to_nothing_is_no_leak(leaked_bytes: int) -> None:
    assert leak(leaked_bytes, Pipeline(), CPU) is None


def test_a_leak_is_named_by_dtype_and_shape() -> None:
    kept = [torch.zeros((7, 11), dtype=torch.float64) for _ in range(3)]
    found = still_alive(Pipeline(), CPU)
    assert found["float64 (7, 11)"] == 3
    said = leak(2 * ALLOWED_BYTES, Pipeline(), CPU)
    assert said is not None
    assert said.startswith("a call left 2.00 MiB allocated; still alive: ")
    del kept
    assert still_alive(Pipeline(), CPU)["float64 (7, 11)"] == 0


def test_the_pipeline_s_own_weights_are_none() -> None:
    pipeline = Pipeline()
    assert still_alive(pipeline, CPU)["float32 (5, 3)"] == 0
    assert still_alive(Pipeline(), CPU)["float32 (5, 3)"] == 1
    assert pipeline.components


def test_an_observed_call_that_leaks_says_so() -> None:
    kept: list[torch.Tensor] = []

    def apply(workload: Any, device: Any) -> Iterator[Any]:
        for pipeline in CATALOGUE["fp16"].apply(workload, device):
            pipeline.vae.decoder.register_forward_hook(
                lambda *_: kept.append(torch.zeros((1024, 1024), device=device.torch_device))
            )
            yield pipeline

    technique = replace(CATALOGUE["fp16"], apply=apply)
    observation = observe(Scenario(small(), technique), SimulatedDevice())
    assert observation.leak is not None
    assert "left 4.00 MiB allocated" in observation.leak
    assert "float32 (1024, 1024)" in observation.leak
    plain = observe(Scenario(small(), CATALOGUE["fp16"]), SimulatedDevice())
    assert plain.leak is None


def test_a_leak_is_red_in_test_activation(tmp_path: Path) -> None:
    result = run_suite(
        *("-p", "tests.fake_bench", "--perf-device", "simulated", "--perf-workload", "storybook"),
        *("-k", "test_activation and bf16", f"--perf-baselines={tmp_path}"),
        FAKE_LEAK="storybook-bf16",
    )
    assert result.returncode == pytest.ExitCode.TESTS_FAILED
    assert "storybook-bf16: a call left 2.00 MiB allocated" in result.stdout
