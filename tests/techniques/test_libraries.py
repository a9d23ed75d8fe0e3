"""Optional libraries: without one its techniques are unsupported, and say what to install."""

from __future__ import annotations

import sys
from importlib import metadata

import pytest

from fixtures.devices.cpu import CpuDevice
from fixtures.techniques import CATALOGUE
from fixtures.techniques.technique import missing_library

OPTIONAL = ("torchao", "optimum-quanto", "gguf", "bitsandbytes", "peft", "tomesd", "DeepCache")
BY_LIBRARY = [technique for technique in CATALOGUE if technique.libraries]


@pytest.mark.parametrize(
    ("installed", "reason"),
    [
        (None, "needs torchao: pip install torchao"),
        ("0.14.1", "needs torchao>=0.15, this is 0.14.1: pip install --upgrade torchao"),
        ("0.15.0", None),
        ("0.19.0.dev20261101", None),
    ],
)
def test_an_installed_library_that_fits_is_not_missing(
    monkeypatch: pytest.MonkeyPatch, installed: str | None, reason: str | None
) -> None:
    def version(name: str) -> str:
        assert name == "torchao"
        if installed is None:
            raise metadata.PackageNotFoundError(name)
        return installed

    monkeypatch.setattr(metadata, "version", version)
    assert missing_library("torchao>=0.15") == reason


def test_without_its_library_a_technique_is_unsupported_and_nothing_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = metadata.version

    def absent(name: str) -> str:
        if name in OPTIONAL:
            raise metadata.PackageNotFoundError(name)
        return known(name)

    monkeypatch.setattr(metadata, "version", absent)
    before, device = set(sys.modules), CpuDevice()
    reasons = {technique.id: technique.unsupported(device) for technique in BY_LIBRARY}
    assert reasons["torchao_int8_weight_only"] == "needs torchao: pip install torchao"
    assert reasons["quanto_int8"] == "needs optimum-quanto: pip install optimum-quanto"
    assert reasons["gguf_q8_0"] == "needs gguf: pip install gguf"
    assert reasons["bitsandbytes_nf4"] == "needs bitsandbytes: pip install bitsandbytes"
    assert reasons["lora_hotswap"] == "needs peft: pip install peft"
    assert reasons["token_merging"] == "needs tomesd: pip install tomesd"
    assert reasons["deep_cache"] == "needs DeepCache: pip install DeepCache"
    assert None not in reasons.values()
    modules = {"torchao", "optimum", "gguf", "bitsandbytes", "peft", "tomesd", "DeepCache"}
    assert not modules & (set(sys.modules) - before)


def test_techniques_without_a_library_ask_for_none() -> None:
    others = {one.id for one in BY_LIBRARY if one.family != "quantization"}
    assert others == {"deep_cache", "token_merging", "lora_hotswap"}
    assert len(BY_LIBRARY) == 7 + len(others)
