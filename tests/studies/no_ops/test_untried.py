"""Every technique of the catalogue is tried by a row, or a reason says why not."""

from __future__ import annotations

from dataclasses import replace
from importlib import metadata

import pytest

from fixtures.commands.errors import CommandError
from fixtures.devices.host import software_versions
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.records.software import installation
from fixtures.studies.no_ops.calls import (
    BY_LIBRARIES,
    FROM_THE_CATALOGUE,
    QUANTIZED,
    calls,
    technique_of,
    versions,
)
from fixtures.studies.no_ops.pipelines import by_class
from fixtures.studies.no_ops.untried import WHY_NOT, untried
from fixtures.techniques import CATALOGUE
from tests.studies.no_ops.trying import found_by

LIBRARIES = {"torchao", "optimum-quanto", "tomesd", "DeepCache", "gguf", "bitsandbytes"}
TAKE_SDPA = ("sd15", "sdxl", "pixart-sigma")
OTHERS = [name for name in by_class(every=False).values() if name != "sd15"]
NEEDING_LIBRARIES = {*QUANTIZED, *BY_LIBRARIES}


@pytest.fixture
def device() -> SimulatedDevice:
    return SimulatedDevice("h200")


def pretend(monkeypatch: pytest.MonkeyPatch, version: str | None) -> None:
    """Let these libraries have a version, or be absent."""
    software_versions()  # is asked once in a process: not when half of its answers are pretence
    real = metadata.version

    def stand_in(name: str) -> str:
        if name not in LIBRARIES:
            return real(name)
        if version is None:
            raise metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(metadata, "version", stand_in)


@pytest.mark.parametrize("version", [None, "99"])
def test_every_technique_is_tried_or_has_a_reason(
    version: str | None, device: SimulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, version)
    rows = {technique_of(name) for name in calls()}
    left_out = untried(calls(), device)

    assert {one.id for one in CATALOGUE} <= rows | left_out.keys()
    assert not rows & left_out.keys()
    assert all(left_out.values())


def test_a_technique_without_row_and_reason_is_refused(
    device: SimulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = replace(CATALOGUE["vae_tiling"], id="new")
    monkeypatch.setitem(CATALOGUE.techniques, "new", new)

    with pytest.raises(CommandError, match="no row tries 'new', and no reason says why"):
        untried(calls(), device)


def test_reasons_are_of_techniques_that_no_row_tries() -> None:
    assert WHY_NOT.keys() <= CATALOGUE.techniques.keys()
    assert not WHY_NOT.keys() & {*FROM_THE_CATALOGUE, *map(technique_of, NEEDING_LIBRARIES)}


def test_without_its_library_a_call_has_no_row_and_the_installation_is_named(
    device: SimulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, None)
    left_out = untried(calls(), device)

    assert not calls().keys() & NEEDING_LIBRARIES
    assert left_out["torchao_int8_weight_only"] == f"needs torchao: {installation('torchao')}"
    assert left_out["quanto_int8"] == f"needs optimum-quanto: {installation('optimum-quanto')}"
    assert left_out["deep_cache"] == f"needs DeepCache: {installation('DeepCache')}"
    assert left_out["token_merging"] == f"needs tomesd: {installation('tomesd')}"


def test_with_its_library_a_call_has_a_row(
    device: SimulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, "99")

    assert calls().keys() >= NEEDING_LIBRARIES
    assert not untried(calls(), device).keys() & set(map(technique_of, NEEDING_LIBRARIES))


@pytest.mark.parametrize("version", [None, "99"])
@pytest.mark.parametrize("name", ["gguf_q8_0", "bitsandbytes_8bit", "bitsandbytes_nf4"])
def test_a_class_of_tensors_is_the_reason_whether_its_library_is_there_or_not(
    name: str, version: str | None, device: SimulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, version)

    assert "a simulated tensor is of a class of its own" in untried(calls(), device)[name]


def test_versions_are_those_of_what_is_called_and_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = {"python": "3", "torch": "2", "diffusers": "0", "transformers": "5", "tomesd": "1"}
    monkeypatch.setattr("fixtures.studies.no_ops.calls.software_versions", lambda: found)

    assert list(versions().items()) == list(found.items())[1:]


@pytest.mark.parametrize(
    "name", ["sd15", *(pytest.param(name, marks=pytest.mark.long) for name in OTHERS)]
)
def test_sdpa_is_what_those_have_that_take_it(name: str) -> None:
    code = CATALOGUE["sdpa"].code
    assert isinstance(code, str)

    assert found_by(code, name).verdict == ("silent" if name in TAKE_SDPA else "refused")
