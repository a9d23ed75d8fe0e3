"""Files that a scenario runs are those of its full-size pipeline, and no others that it imports."""

from __future__ import annotations

import hashlib
from pathlib import Path

import diffusers
import pytest

from fixtures.devices.cpu import CpuDevice
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.devices.simulated.profiles import find_card
from fixtures.measuring.library_files import functions_run, installed_digests
from fixtures.measuring.observation import observe
from fixtures.records.counts import HOST_CALLS, Counts
from fixtures.records.outcome import ScenarioError
from tests.support.scenarios import find_scenario

PIPELINE = "diffusers/pipelines/flux/pipeline_flux.py"


def files(counts: Counts) -> set[str]:
    return {row.place for row in counts.rows if row.kind == HOST_CALLS}


def test_files_that_define_functions_have_digests() -> None:
    digests = installed_digests()
    content = (Path(diffusers.__file__).parents[1] / PIPELINE).read_bytes()
    assert digests[PIPELINE] == hashlib.sha256(content).hexdigest()
    assert "diffusers/__init__.py" not in digests
    assert {name.partition("/")[0] for name in digests} >= {"diffusers", "transformers"}


def test_what_is_called_runs_and_what_is_imported_does_not() -> None:
    scenario = find_scenario("storybook", "attention_slicing")
    run = files(functions_run(scenario, CpuDevice()))
    assert "diffusers/models/unets/unet_2d_condition.py" in run
    assert "diffusers/models/transformers/transformer_flux.py" not in run
    # Imported with the scheduler, whose classes' bodies make lists.
    assert "diffusers/schedulers/scheduling_k_dpm_2_discrete.py" not in run
    with pytest.raises(ScenarioError, match="no CPU kernels"):
        functions_run(find_scenario("storybook", "xformers"), CpuDevice())


@pytest.mark.long
@pytest.mark.parametrize("technique", ["bf16", "group_offload_leaf"])
def test_a_small_copy_runs_the_files_of_its_workload(technique: str) -> None:
    scenario, device = find_scenario("flux", technique), SimulatedDevice(find_card("h200"))
    run = files(functions_run(scenario, device))
    assert PIPELINE in run
    assert files(observe(scenario, device).counts) <= run
