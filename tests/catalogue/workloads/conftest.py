"""A small pipeline as diffusers saves it, for the tests of what is loaded and what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from fixtures.catalogue.workloads.twins import SMALL


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pipelines") / "small"
    SMALL["sd15"]("", torch.float32).save_pretrained(folder, safe_serialization=True)
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    copy = tmp_path / "pipeline"
    shutil.copytree(saved, copy)
    return copy
