"""The table of workloads and releases: what runs, what is absent, what fails, and goes on."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from fixtures.commands.bisect.candidates import releases_of
from fixtures.commands.compare.environments import Environment, Environments
from fixtures.commands.compare.installer import InstallationError
from fixtures.commands.compare.requirements import Requirements
from fixtures.commands.releases import __main__ as command
from fixtures.commands.releases import trying
from tests.support.fake_side import FAILURES, in_process

PRINTED = "Available versions: 0.33.0rc1, 0.32.1, 0.32.0, 0.31.0, 0.30.3, 0.30.2, 0.29.2, 0.9.0\n"
KINDS = {"0.30.3": "absent", "0.31.0": "broken", "0.32.1": "sound", "0.32.0": "import"}


@dataclass
class FakeEnvironments(Environments):
    """Each release is a fake side of its kind; `refused` cannot be installed."""

    installed: list[str] = field(default_factory=list)
    refused: str = ""

    def prepare(self, requirements: Requirements) -> Environment:
        release = requirements.texts[0].partition("==")[2]
        self.installed.append(str(requirements))
        if release == self.refused:
            raise InstallationError(f"{requirements} cannot be installed: no space")
        return Environment(Path(KINDS[release]), str(requirements))


@pytest.fixture
def environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeEnvironments:
    made = FakeEnvironments(tmp_path / "environments")
    in_process(monkeypatch)
    monkeypatch.setattr(command, "Trying", partial(trying.Trying, environments=made))
    monkeypatch.setattr(command, "STORED", tmp_path / "stored")
    releases = partial(releases_of, index=lambda package: PRINTED)
    monkeypatch.setattr(trying, "releases_of", releases)
    return made


ONE = ["--perf-workload", "flux"]


def rows(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line.startswith(("|", "1.", "2."))]


def test_the_last_release_of_every_minor_version_is_tried_and_the_page_says_how_it_went(
    environments: FakeEnvironments, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "releases.md"
    assert command.main([*ONE, "--perf-workload", "sd15", "--output", str(page)]) == 1
    assert rows(page)[:4] == [
        "| workload | 0.30.3 | 0.31.0 | 0.32.1 |",
        "| --- | :---: | :---: | :---: |",
        "| `flux` | - | 1 | ✓ |",
        "| `sd15` | - | 1 | ✓ |",
    ]
    assert rows(page)[4] == "1. it does not work"
    assert rows(page)[-1] == "| 0.32.1 | transformers 4.57.6, ftfy 6.3.1 |"
    assert f"0.30.3, flux: skipped: {FAILURES['absent'].reason}" in capsys.readouterr().out


def test_what_was_tried_is_not_tried_again(
    environments: FakeEnvironments, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = ["--release", "0.32.1"]
    assert command.main([*ONE, *named]) == 0
    assert command.main([*ONE, "--perf-workload", "sd15", *named]) == 0
    assert len(environments.installed) == 2
    assert "0.32.1, flux: good: runs (cached" in capsys.readouterr().out
    assert command.main([*ONE, *named, "--fresh", "--with", "peft==0.21.2"]) == 0
    assert "peft==0.21.2" in environments.installed[-1]


@pytest.mark.parametrize(
    ("release", "reason"), [("0.32.0", "FLAX_WEIGHTS_NAME"), ("0.31.0", "no space")]
)
def test_what_cannot_be_installed_or_imported_fails_with_the_reason(
    environments: FakeEnvironments, tmp_path: Path, release: str, reason: str
) -> None:
    environments.refused = "0.31.0"
    page = tmp_path / "releases.md"
    assert command.main([*ONE, "--release", release, "--output", str(page)]) == 1
    assert "| `flux` | 1 |" in rows(page)
    assert any(reason.replace("_", "\\_") in row for row in rows(page))
    assert "ftfy 6.3.1" in rows(page)[-1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--release", "0.8.0"], "diffusers 0.8.0 is not a release; the newest are 0.33.0rc1"),
        (["--perf-workload", "fluks"], "--perf-workload: Workload 'fluks' is unknown"),
    ],
)
def test_what_there_is_not_is_refused(
    environments: FakeEnvironments,
    arguments: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command.main(arguments) == 2
    assert said in capsys.readouterr().err
