"""What is compared: as pytest selects it, other weights included."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.commands.compare.command_line import selected
from fixtures.commands.errors import CommandError
from fixtures.settings import Settings
from tests.support.configurations import write_pipeline


@pytest.mark.long
def test_a_pipeline_without_a_workload_is_selected_by_its_weights(tmp_path: Path) -> None:
    folder = str(write_pipeline("DDIMPipeline", tmp_path / "faces"))
    settings = Settings(device="simulated", weights=folder)
    chosen = selected(settings, "[faces-fp32] or [faces-bf16]", "")
    assert [scenario.id for scenario in chosen] == ["faces-fp32", "faces-bf16"]
    assert {scenario.weights for scenario in chosen} == {folder}


@pytest.mark.long
def test_weights_that_are_no_pipeline_are_told_in_pytest_s_words(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"pytest says: .* it has no model_index\.json"):
        selected(Settings(device="simulated", weights=str(tmp_path)), "fp32", "")


@pytest.mark.long
def test_a_workload_that_does_not_run_by_default_is_to_be_named() -> None:
    with pytest.raises(
        CommandError, match=r"wan2\.2-5b is not a workload of this run; add --perf-workload wan2"
    ):
        selected(Settings(device="simulated"), "[wan2.2-5b-bf16]", "")
