"""A catalogue as a user writes it, and a bench that forgets it after the test."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.catalogue import own as catalogues
from fixtures.catalogue.techniques import CATALOGUE
from fixtures.catalogue.workloads import WORKLOADS
from fixtures.settings import SettingsError

TECHNIQUE = '''
from fixtures.catalogue.techniques.registry import technique


@technique(
    family="mine", document="notes", activation_check=lambda context: None, min_ssim=0.99
)
def warmed(workload, device):
    """Nothing but fp32, under another name."""
    yield workload.load(device.base_dtype).to(device.torch_device)
'''
WORKLOAD = '''
from dataclasses import replace

from fixtures.catalogue.workloads.base import EMBEDDED
from fixtures.catalogue.workloads.registry import workload
from fixtures.catalogue.workloads.storybook import CALL, source


@workload(
    "storybook-tiny",
    kind="single",
    call=replace(CALL, width=64, height=64, steps=2),
    default_weights=EMBEDDED,
)
def tiny(weights, dtype, *, values=True):
    """A quarter of the image."""
    return source(weights, dtype, values=values)
'''
BOTH = TECHNIQUE + WORKLOAD


@contextlib.contextmanager
def nothing_kept(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is loaded inside is forgotten: modules, paths, and what they declared."""
    modules = set(sys.modules)
    patch.setattr(sys, "path", list(sys.path))
    patch.setattr(catalogues, "_LOADED", {})
    kept = [(declared, dict(declared)) for declared in (CATALOGUE.techniques, WORKLOADS)]
    try:
        yield
    finally:
        for declared, before in kept:
            declared.clear()
            declared.update(before)  # type: ignore[arg-type]
        for name in set(sys.modules) - modules:
            origin = getattr(sys.modules[name], "__file__", None) or ""
            if "pytest-" in origin and "site-packages" not in origin:
                del sys.modules[name]


def written(folder: Path, text: str = BOTH, name: str = "own_techniques.py") -> Path:
    """A file with this text."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def refusal(*paths: str | Path) -> str:
    """The sentence by which these catalogues are refused."""
    with pytest.raises(SettingsError) as caught:
        catalogues.load(paths)
    sentence = str(caught.value)
    assert sentence.startswith("--perf-catalogue ")
    assert sentence.endswith((".", "?"))
    assert "\n" not in sentence
    return sentence
