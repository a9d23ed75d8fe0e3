"""A small pipeline of a class without a workload, as a folder without weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.configurations import write_pipeline


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_pipeline("PixArtAlphaPipeline", tmp_path / "pipeline")
