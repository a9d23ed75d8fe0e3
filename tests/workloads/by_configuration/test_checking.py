"""Weights of a hub id are checked by their configurations alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.workloads import WORKLOADS, WorkloadError
from fixtures.workloads.by_configuration import checking
from fixtures.workloads.by_configuration.checking import check_weights_of


@pytest.mark.parametrize(
    ("pipeline", "is_refused"), [("StableDiffusionPipeline", False), ("FluxPipeline", True)]
)
def test_of_a_hub_id_the_class_decides(
    pipeline: str, is_refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model_index.json").write_text(f'{{"_class_name": "{pipeline}"}}')
    monkeypatch.setattr(checking, "configurations_of", lambda weights: tmp_path)
    workload = WORKLOADS["sd15"].with_weights("owner/name")
    if not is_refused:
        check_weights_of(workload)
        return
    with pytest.raises(WorkloadError, match=r"'owner/name' holds 'FluxPipeline', .* flux$"):
        check_weights_of(workload)


@pytest.mark.parametrize("weights", ["", "random"])
def test_weights_that_nobody_owns_are_not_looked_for(weights: str) -> None:
    check_weights_of(WORKLOADS["sd15"].with_weights(weights))
