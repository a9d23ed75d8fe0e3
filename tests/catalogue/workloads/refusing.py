"""Folders that are damaged for a test, and what loading says of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fixtures.catalogue.workloads import WorkloadError

Damage = Callable[[Path], object]
INDEX = "model_index.json"


def refusal(load: Callable[[], object]) -> str:
    """What loading says, which must be one sentence with a remedy."""
    with pytest.raises(WorkloadError) as refused:
        load()
    sentence = str(refused.value)
    assert "\n" not in sentence
    assert "; " in sentence
    return sentence


def change_json(path: Path, **changes: Any) -> None:
    content = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**content, **changes}))


def changed(file: str, **changes: Any) -> Damage:
    return lambda folder: change_json(folder / file, **changes)


def written(file: str, content: bytes = b"") -> Damage:
    return lambda folder: (folder / file).write_bytes(content)


def removed(file: str) -> Damage:
    return lambda folder: (folder / file).unlink()
