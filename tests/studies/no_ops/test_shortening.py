"""Workloads are cut where all layers look alike, and nowhere else."""

from __future__ import annotations

import pytest

from fixtures.commands.errors import CommandError
from fixtures.studies.no_ops import shortening
from fixtures.studies.no_ops.pipelines import by_class
from fixtures.workloads import WORKLOADS


def test_every_class_is_cut_to_two_layers_of_its_published_width() -> None:
    for kind, name in by_class().items():
        cut = shortening.shortened(WORKLOADS[name])
        parts = cut.source.layout.models  # type: ignore[attr-defined]
        for part, config in cut.source.configs.items():  # type: ignore[attr-defined]
            is_encoder = part in parts and parts[part].library == "transformers"
            if is_encoder and kind in shortening.READ_IN_THE_MIDDLE:
                assert config == WORKLOADS[name].source.configs[part]  # type: ignore[attr-defined]
                continue
            for key in shortening.LAYERS:
                layers = config.get(key, 0)
                most = layers if isinstance(layers, int) else max(layers)
                assert most <= shortening.FEWEST_LAYERS, (name, part, key)
        assert (cut.call.batch, cut.call.steps) == (2, shortening.STEPS)


def test_a_workload_without_a_published_configuration_is_refused() -> None:
    with pytest.raises(CommandError, match="no published configuration"):
        shortening.shortened(WORKLOADS["storybook"])
