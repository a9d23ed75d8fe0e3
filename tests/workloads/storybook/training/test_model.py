"""The architecture that training builds is that of the committed pipeline."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from fixtures.workloads.storybook import PIPELINE_FOLDER
from fixtures.workloads.storybook.training.model import (
    new_scheduler,
    new_text_encoder,
    new_unet,
    new_vae,
)

pytestmark = pytest.mark.long

SET_LATER = {"scaling_factor", "dtype", "architectures", "transformers_version", "_name_or_path"}


@pytest.mark.parametrize(
    ("part", "make"),
    [
        ("unet/config.json", new_unet),
        ("vae/config.json", new_vae),
        ("text_encoder/config.json", new_text_encoder),
        ("scheduler/scheduler_config.json", new_scheduler),
    ],
)
def test_training_builds_the_committed_architecture(part: str, make: Callable[[], Any]) -> None:
    committed = json.loads((PIPELINE_FOLDER / part).read_text(encoding="utf-8"))
    config = make().config
    built = json.loads(json.dumps(config.to_dict() if hasattr(config, "to_dict") else dict(config)))
    names = committed.keys() & built.keys() - SET_LATER
    assert len(names) > 10
    assert {name: built[name] for name in names} == {name: committed[name] for name in names}
