"""A replay: every commit measured once, the change points found, an interruption survived."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from fixtures.commands.checkout import Commit, commits_since
from fixtures.commands.compare.environments import Environment, Environments
from fixtures.commands.compare.installer import InstallationError
from fixtures.commands.compare.requirements import Requirements
from fixtures.commands.replay import __main__ as command
from fixtures.commands.replay.changes import bisection, change_points, lines, page
from fixtures.commands.replay.recordings import Recordings
from fixtures.records.outcome import Outcome
from fixtures.records.run import RESULTS
from fixtures.scenarios import find_scenario
from fixtures.settings import Settings
from fixtures.verdicts.limits import Limits
from tests.support.fake_side import in_process
from tests.support.tiny_package import TinyPackage

SCENARIOS = [find_scenario("storybook", name) for name in ("fp32", "bf16")]
KINDS = ("sound", "sound", "more", "broken", "more")
"""What each commit of the checkout is as a side."""


@dataclass
class FakeEnvironments(Environments):
    """Each commit is a fake side, of the kind that its module names."""

    installed: list[str] = field(default_factory=list)
    refused: str = ""

    def prepare(self, requirements: Requirements) -> Environment:
        place = Path(requirements.texts[0].partition(" @ ")[2].removeprefix("file://"))
        kind = (place / "tiny.py").read_text().split("'")[1].split()[0]
        self.installed.append(kind)
        if kind == self.refused:
            raise InstallationError(f"{requirements} cannot be installed: no such release")
        return Environment(Path(kind), str(requirements))


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    in_process(monkeypatch)
    package = TinyPackage(tmp_path / "tiny")
    versioned = package.folder / "src" / "tiny" / "__init__.py"
    versioned.parent.mkdir(parents=True)
    versioned.write_text('__version__ = "1.0"\n')
    for number, kind in enumerate(KINDS):
        package.commit(f"{kind} change (#{100 + number})")
    return package.folder


@pytest.fixture
def made(tmp_path: Path, checkout: Path) -> Recordings:
    return Recordings(
        checkout,
        tmp_path / "results",
        tmp_path / "worktrees",
        SCENARIOS,
        Settings(),
        environments=FakeEnvironments(tmp_path / "environments"),
        show=lambda text: None,
    )


@pytest.fixture
def commits(checkout: Path) -> list[Commit]:
    return commits_since(checkout, "2000-01-01", "HEAD", 1)


def installed(made: Recordings) -> list[str]:
    """The kinds that were installed since this was asked last."""
    assert isinstance(made.environments, FakeEnvironments)
    kinds = list(made.environments.installed)
    made.environments.installed.clear()
    return kinds


@pytest.mark.parametrize("at_once", [1, 3])
def test_each_change_is_found_at_its_commit(
    made: Recordings, commits: list[Commit], at_once: int
) -> None:
    measured = made.all_of(commits, at_once)
    assert sorted(installed(made)) == sorted(KINDS)
    points = {
        point.commit.pull_request: [finding.outcome for finding in point.findings]
        for point in change_points(measured, SCENARIOS, "simulated", Limits())
    }
    # The fp32 scenario of a broken side runs as on a sound one; what a broken one becomes does not
    # count, for there is nothing to compare with.
    assert set(points) == {"102", "103", "104"}
    assert points["102"][0] is Outcome.REGRESSION
    assert points["103"] == [Outcome.BROKEN, Outcome.IMPROVEMENT, Outcome.IMPROVEMENT]
    assert Outcome.BROKEN not in points["104"]
    assert not list(made.worktrees.glob("slot-*"))


def test_what_was_measured_is_not_measured_again(made: Recordings, commits: list[Commit]) -> None:
    first = commits[:2]
    before = made.all_of(first, 1)
    assert len(installed(made)) == 2
    assert made.all_of(first, 1) == before
    assert not installed(made)
    made.path(first[0]).write_text("{")
    made.all_of(first, 1)
    assert installed(made) == [KINDS[0]]
    # Another scenario asks for more than is stored.
    replace(made, scenarios=[*SCENARIOS, find_scenario("storybook", "sdpa")]).all_of(first, 1)
    assert len(installed(made)) == 2


def test_what_cannot_be_installed_is_left_out(made: Recordings, commits: list[Commit]) -> None:
    made.environments = FakeEnvironments(made.folder, refused="broken")
    measured = made.all_of(commits[1:], 1)
    assert [commit.pull_request for commit, _ in measured] == ["101", "102", "104"]
    notes = RESULTS.read(made.path(commits[3])).notes
    assert any("cannot be installed" in note for note in notes)


def test_a_change_point_names_its_pull_request_and_its_bisection(
    made: Recordings, commits: list[Commit], checkout: Path
) -> None:
    measured = made.all_of(commits[1:3], 1)
    [point] = change_points(measured, SCENARIOS, "simulated", Limits())
    name, link, *findings = lines(point)
    assert name.endswith("more change (#102)")
    assert link.strip() == "https://github.com/huggingface/diffusers/pull/102"
    assert findings[0].startswith("   regression: ")
    command_line = bisection(point, checkout, "--perf-device cpu", "[storybook-fp32]")
    assert f"--good {point.before.sha[:10]} --bad {point.commit.sha[:10]}" in command_line
    assert '--perf-device cpu -k "[storybook-fp32]" ' in command_line
    assert "--metric host_calls --change worse" in command_line
    html = page(measured, [point])
    assert "more change (#102)" in html
    assert "Nothing beyond its limits" not in html
    assert "Nothing beyond its limits" in page(measured[:1], [])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--perf-device", "cuda"],
            "a replay compares exact figures, which only cpu and simulated have",
        ),
        (["--since", "2090-01-01"], "has 0 commits of its package since 2090-01-01"),
    ],
)
def test_what_cannot_be_replayed_is_said_in_a_sentence(
    tmp_path: Path,
    checkout: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.setattr(command, "selected", lambda *asked: SCENARIOS)
    given = ["--checkout", str(checkout), "--since", "2000-01-01", *arguments]
    assert command.main([*given, "--perf-report", str(tmp_path / "replay")]) == 2
    assert sentence in capsys.readouterr().err


def test_the_command_prints_the_change_points_with_their_bisections_and_writes_the_page(
    tmp_path: Path,
    checkout: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(command, "selected", lambda *asked: SCENARIOS)
    monkeypatch.setattr(command, "WORKTREES", tmp_path / "worktrees")
    monkeypatch.setattr(Environments, "prepare", FakeEnvironments(tmp_path).prepare)
    report = tmp_path / "replay"
    given = ["--checkout", str(checkout), "--since", "2000-01-01", "--perf-report", str(report)]
    assert command.main([*given, "--every", "2", "--jobs", "2"]) == 0
    said = capsys.readouterr().out
    assert "3 commits compared: 1 changed something" in said
    assert "to find it: nox -s bisect -- --checkout" in said
    assert (report / "history.html").is_file()
    assert len(list((report / "results").glob("*.json"))) == 3


@pytest.mark.parametrize("given", ["0", "-1", "two"])
def test_every_and_jobs_are_whole_numbers(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--checkout", ".", "--since", "2000-01-01", "--every", given])
    assert f"{given!r} is not a whole number above zero." in capsys.readouterr().err
