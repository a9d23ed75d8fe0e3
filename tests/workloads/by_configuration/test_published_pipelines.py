"""Published pipelines of many classes: full size, by their configurations alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import diffusers
import pytest
import torch

from fixtures.workloads.by_configuration.workload import workload_of_folder
from fixtures.workloads.composition import composition_of
from tests.support.configurations import FULL_SIZE, class_of, config_of, write_pipeline
from tests.support.configurations.trying import REFUSED, denoisers_of, rows

# What pipelines warn of concerns packages under test; a pipeline may be old.
pytestmark = pytest.mark.filterwarnings("default")

PIPELINES: dict[str, Any] = FULL_SIZE["pipelines"]
QUICK = ("SanaPipeline", "StableDiffusionXLImg2ImgPipeline")
TRIED = [*QUICK, *[name for name in [*PIPELINES][4::8] if name not in QUICK]]
"""Every eighth: `python -m tests.support.configurations` tries all, half an hour."""
COUNTED = [name for name, pipeline in PIPELINES.items() if "billions" in pipeline]
IN_WORDS = 0.07
"""What "12B" may be off: it is rounded, and may leave out embeddings."""


def count(component: str) -> float:
    """Billions of values that a file of the model's weights holds."""
    library, config, *_ = FULL_SIZE["components"][component]
    with torch.device("meta"):
        made: Any = class_of(library, component).from_config(config_of(config))
    weights: dict[str, torch.Tensor] = made.state_dict()
    return sum(map(torch.Tensor.numel, weights.values())) / 1e9


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in COUNTED],
)
def test_a_denoiser_has_as_many_weights_as_its_makers_say(name: str) -> None:
    billions, _ = PIPELINES[name]["billions"]
    is_exact = billions != round(billions, 2)  # half the bytes of its files
    found = sum(map(count, denoisers_of(name)))
    assert found == pytest.approx(billions, rel=1e-6 if is_exact else IN_WORDS)


def test_everything_has_a_source_and_is_of_a_class_of_its_own() -> None:
    sources = FULL_SIZE["sources"]
    named = [
        *(component[2] for component in FULL_SIZE["components"].values() if len(component) > 2),
        *(pipeline["source"] for pipeline in PIPELINES.values()),
        *(pipeline["billions"][1] for pipeline in PIPELINES.values() if "billions" in pipeline),
    ]
    for source in named:
        key, _, path = source.partition(":")
        assert path, source
        assert key in {*sources, "https", "its name"}, source
    assert not [one for one in FULL_SIZE["components"].values() if len(one) < 3 and one[1] == {}]
    assert all(hasattr(diffusers, name) for name in PIPELINES)
    assert len(PIPELINES) >= 60
    assert not {*REFUSED} - {*PIPELINES}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in TRIED],
)
def test_a_published_pipeline_is_answered_or_refused_with_its_reason(name: str) -> None:
    (row,) = rows([name])
    assert REFUSED.get(name, "") in row.reason
    assert (row.peak_bytes > 0) == (name not in REFUSED)


def test_a_prior_is_a_denoiser(tmp_path: Path) -> None:
    folder = write_pipeline("StableCascadePriorPipeline", tmp_path / "mine", FULL_SIZE)
    found = composition_of(folder, {}).denoiser
    assert found is not None
    assert found.__name__ == "StableCascadeUNet"


def test_a_pipeline_that_makes_a_model_of_parts_is_made_without_weights(tmp_path: Path) -> None:
    """AnimateDiff copies a UNet and a motion adapter into one."""
    folder = write_pipeline("AnimateDiffPipeline", tmp_path / "mine", FULL_SIZE)
    assert workload_of_folder(str(folder)).call.frames == 16
