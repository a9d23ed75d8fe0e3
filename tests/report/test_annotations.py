"""Annotations of GitHub Actions: at the right line, one a place, and never a command of others."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from fixtures.devices import library_paths
from fixtures.records.outcome import Outcome
from fixtures.report.annotations import MAX_SHOWN, Failure, Place, annotated, failed, failures_of
from fixtures.report.findings import Finding
from tests.support.runs import run_record, scenario_record

ATTENTION = "src/diffusers/models/attention.py"
MODULES = {
    ATTENTION: "import torch\n\nclass Attention:\n    async def hook(self):\n        pass\n",
    "src/diffusers/models/resnet.py": "class ResnetBlock2D(Base):\n    pass\n\nclass Decoder:\n",
    "src/diffusers/models/vae.py": "class Decoder: pass\n",
}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of diffusers, on a runner of GitHub's."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    for name, text in MODULES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("places", "place"),
    [
        (["diffusers/models/attention.py:245"], 245),
        (["diffusers/models/attention.py:Attention.hook"], 4),
        (["diffusers/models/attention.py:forward"], 1),
        (["diffusers/models/gone.py:7", "diffusers/models/attention.py:9"], 9),
        (["ResnetBlock2D", "Attention"], "src/diffusers/models/resnet.py"),
        (["Decoder"], None),  # there are two
        (["Unknown"], None),
        (["diffusers/models/gone.py:7"], None),
        (["diffusers/../../etc/passwd.py:7"], None),
        (["torch/nn/modules/module.py:7", "/etc/passwd:7", "a.*"], None),
        ([], None),
    ],
)
def test_a_failure_stands_at_the_first_line_function_or_class_that_is_there(
    places: list[str], place: int | str | None, checkout: Path
) -> None:
    failure = Failure("title", "sentence", tuple(places))
    (command,) = annotated([failure], [checkout / "other", checkout])
    found = Place(ATTENTION, place) if isinstance(place, int) else place and Place(place, 1)
    where = f"file={found.file},line={found.line}," if found else ""
    assert command == f"::error {where}title=title::sentence"


def test_without_a_checkout_there_is_no_file_and_elsewhere_nothing_is_said(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = Failure("t", "raised", ("diffusers/models/attention.py:2",))
    assert annotated([failure], []) == ["::error title=t::raised"]
    for value in ("", "false"):
        monkeypatch.setenv("GITHUB_ACTIONS", value)
        assert annotated([failure], [checkout]) == []


def test_no_word_of_others_is_a_command_or_a_property(checkout: Path) -> None:
    words = "50 %, file=/etc/passwd::\r\n::stop-commands::x\n##[error]%0A"
    (command,) = annotated([Failure(words, words)], [checkout])
    (line,) = command.splitlines()
    properties, said = line.removeprefix("::error title=").split("::", 1)
    assert properties == (
        "50 %25%2C file=/etc/passwd%3A%3A %3A%3Astop-commands%3A%3Ax ##[error]%250A"
    )
    assert said == "50 %25, file=/etc/passwd:: ::stop-commands::x ##[error]%250A"


def test_failures_of_one_place_are_one_and_no_more_than_github_shows(checkout: Path) -> None:
    at = ("diffusers/models/attention.py:2",)
    alike = [Failure(f"sd15-{name}", "raised E", at) for name in ("fp32", "fp16", "bf16")]
    others = [Failure(f"sdxl-{number}", f"peak {number}") for number in range(20)]
    commands = annotated([*alike, *others], [checkout])
    assert len(commands) == MAX_SHOWN
    assert (
        commands[0] == f"::error file={ATTENTION},line=2,title=sd15-fp32 and 2 more here::raised E"
    )
    assert commands[1] == "::error title=sdxl-0::peak 0"


def test_what_fails_is_annotated_and_nothing_else() -> None:
    outcomes = (Outcome.PASS, Outcome.REGRESSION, Outcome.INCONCLUSIVE, Outcome.NOT_JUDGED)
    run = run_record(scenario_record("bf16", *outcomes))
    run.scenarios["storybook-bf16"].verdicts[1:2] = [
        replace(run.scenarios["storybook-bf16"].verdicts[1], places=("Attention",))
    ]
    sentence = "storybook-bf16: says why"
    regression = Failure("storybook-bf16: regression (latency ratio)", sentence, ("Attention",))
    assert failures_of(run, strict=False) == [regression]
    assert len(failures_of(run, strict=True)) == 2
    findings = [
        Finding(
            outcome, "clone +4 in ResnetBlock2D", "operations +1 %", ("sd15-fp32",), ("Resnet",)
        )
        for outcome in (Outcome.REGRESSION, Outcome.IMPROVEMENT, Outcome.PASS)
    ]
    words = "clone +4 in ResnetBlock2D: operations +1 %"
    assert failed(findings) == [Failure("regression in sd15-fp32", words, ("Resnet",))]


def test_an_editable_installation_tells_its_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origins = {
        "diffusers": {"url": (tmp_path / "a b").as_uri(), "dir_info": {"editable": True}},
        "transformers": {"url": tmp_path.as_uri(), "dir_info": {}},
    }

    def distribution(name: str) -> object:
        if name not in origins:
            raise metadata.PackageNotFoundError(name)
        return SimpleNamespace(read_text=lambda file: json.dumps(origins[name]))

    monkeypatch.setattr(metadata, "distribution", distribution)
    assert library_paths.editable_checkouts() == [tmp_path / "a b"]
