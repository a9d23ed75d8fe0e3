"""A new technique as CONTRIBUTING.md describes it: its code is run."""

from __future__ import annotations

import importlib
import re

import pytest
import torch

from fixtures.catalogue.techniques import CATALOGUE
from fixtures.devices.cpu import CpuDevice
from fixtures.settings import REPOSITORY
from tests.support.half_done import brief, complaint, complaint_at_rest, nothing

TEXT = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTION = re.findall(r"^## A new technique$(.*?)^## ", TEXT, re.MULTILINE | re.DOTALL)[0]


def documented(pattern: str) -> str:
    """The one place in the section that matches."""
    (text,) = re.findall(pattern, SECTION, re.DOTALL)
    return str(text)


CODE = documented(r"```python\n(.*?)```")
FILE = documented(r"Append this to\s`(\S+)`")
NAME = re.findall(r"^def (\w+)\(workload", CODE, re.MULTILINE)[0]


def test_it_is_in_effect_and_complains_where_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process: the code runs below the module that it is appended to."""
    monkeypatch.setattr(CATALOGUE, "techniques", dict(CATALOGUE.techniques))
    module = vars(importlib.import_module(FILE.removesuffix(".py").replace("/", ".")))
    exec(compile(CODE, FILE, "exec"), dict(module))  # noqa: S102
    workload, device = brief("storybook"), CpuDevice()
    assert complaint(NAME, workload, device, nothing) is None
    said = complaint_at_rest(
        NAME,
        workload,
        device,
        lambda pipeline: pipeline.vae.to(memory_format=torch.contiguous_format),
    )
    assert "has strides" in (said or "")
