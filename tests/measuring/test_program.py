"""The program that measures a scenario on a card: short, whole, and it runs."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from fixtures.devices import open_device
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.measuring.program import program_of
from fixtures.scenarios import Scenario, scenarios
from fixtures.techniques import CATALOGUE
from fixtures.workloads import BY_NAME, FULL_SIZE, WORKLOADS
from fixtures.workloads.storybook import PIPELINE_FOLDER
from fixtures.workloads.twins import SMALL
from tests.support.small_workloads import small_workload

SHOWN_ALONE = ("traced_unet", "prompt_embeddings", "gguf_q8_0", "deep_cache")


@pytest.mark.filterwarnings("ignore:`FluxPosEmbed` is deprecated:FutureWarning")
@pytest.mark.parametrize("name", [workload.name for workload in (*FULL_SIZE, *BY_NAME)])
def test_every_technique_of_every_workload_has_a_short_program_or_none(name: str) -> None:
    card, workload = SimulatedDevice("rtx-4090"), WORKLOADS[name]
    pipeline = small_workload(name if name in SMALL else "sd15").load(torch.float32)
    programs = {
        scenario.technique.id: program_of(scenario.technique, workload, pipeline, card)
        for scenario in scenarios([name])
    }
    for program in filter(None, programs.values()):
        compile(program, name, "exec")
        assert len(program.splitlines()) <= 20
        for words in (workload.repository, "torch_dtype=torch.", "manual_seed(0)"):
            assert program.count(words) == 1
        assert f"num_inference_steps={workload.call.steps}" in program
        assert '"cuda")' not in program.replace('== "cuda"', "")
    assert any(programs.values())
    assert not any(programs.get(technique) for technique in SHOWN_ALONE)


def test_a_program_runs_without_a_card_and_says_what_needs_one() -> None:
    storybook = WORKLOADS["storybook"]
    brief = replace(storybook.call, steps=1, width=64, height=64)
    workload = replace(storybook, repository=str(PIPELINE_FOLDER), call=brief)
    cpu, autocast = open_device("cpu"), CATALOGUE["autocast"]
    with Scenario(workload, autocast).running(cpu) as pipeline:
        program = program_of(autocast, workload, pipeline, cpu)
    assert "with torch.autocast(device, dtype=torch.bfloat16):\n        pipeline(" in program
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    seconds, versions, no_card = done.stdout.splitlines()
    assert re.fullmatch(r"\d+\.\d{3} s, the median of five calls", seconds)
    assert versions.startswith("diffusers ")
    assert versions.endswith(f"torch {torch.__version__}")
    assert no_card == "no card, which peak memory needs"
    assert program_of(autocast, storybook, pipeline, cpu) == ""
