"""A technique of one's own as `docs/your-own-technique.md` describes it: followed in a folder."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from fixtures.catalogue import own as catalogues
from fixtures.devices.cpu import CpuDevice
from fixtures.settings import REPOSITORY, SettingsError
from fixtures.worker.observation import observe
from tests.support.own_catalogue import nothing_kept
from tests.support.running import run_suite
from tests.support.scenarios import find_scenario
from tests.test_architecture import run

PAGE = (REPOSITORY / "docs" / "your-own-technique.md").read_text(encoding="utf-8")
CODES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
FILES = dict(zip(("my_techniques.py", "my_workloads.py"), CODES, strict=True))
ID = "fused_projections"
LINE = "    pipeline.fuse_qkv_projections()\n"
ARGUMENTS = {"perf": (), "refresh": ("--perf-update-baselines",)}
"""What the sessions of `noxfile.py` hand to pytest besides."""
SMALL = ("--perf-device", "simulated")
"""The last command of the page is of its own small workload; here the others are, too."""
QUICK = "--perf-workload", "thumbnail", "--perf-catalogue=../my_workloads.py"


@dataclass(frozen=True)
class Command:
    """One `nox -s SESSION -- OPTIONS` of the page that goes to pytest."""

    session: str
    options: tuple[str, ...]

    def words(self, folder: Path, *more: str) -> list[str]:
        """What pytest is given in a folder within this one, with further options."""
        words = (*ARGUMENTS[self.session], *self.options, *more)
        return [word.replace("=../", f"={folder}/") for word in words]

    def run(self, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
        """Run it by pytest alone."""
        return run_suite(*self.words(folder, *more))


COMMANDS = [
    Command(session, tuple(shlex.split(options)))
    for session, options in re.findall(r"^python -m nox -s (perf|refresh) -- (.+)$", PAGE, re.M)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder above, with the page's files."""
    folder = tmp_path_factory.mktemp("mine")
    for name, code in FILES.items():
        (folder / name).write_text(code, encoding="utf-8")
    return folder


@pytest.mark.long
def test_its_commands_choose_its_scenario_alone_and_collecting_it_imports_no_torch(
    folder: Path, tmp_path: Path
) -> None:
    for command, chosen in ((COMMANDS[0], f"storybook-{ID}"), (COMMANDS[3], f"thumbnail-{ID}")):
        said = run(tmp_path, *command.words(folder, "--collect-only", "--perf-device", "cpu"))
        assert set(re.findall(r"\[(\S+)\]", said)) == {chosen}
        assert "imported: nothing" in said


@pytest.mark.long
def test_it_is_missed_recorded_and_judged(folder: Path) -> None:
    """One process each, of which most of the time is taken by imports."""
    perf, refresh, again, _ = COMMANDS
    assert perf == again, "the first command again"
    stored = folder / "my-baselines" / "simulated" / "thumbnail.json"

    # This test of the suite measures nothing.
    before = perf.run(folder, *SMALL, *QUICK, "-k", f"{ID} and has_an_entry")
    assert before.returncode == 1, before.stdout + before.stderr
    assert f"thumbnail-{ID}: no entry in {stored}; record it with: " in before.stdout

    recorded = refresh.run(folder, *SMALL, *QUICK)
    assert recorded.returncode == 0, recorded.stdout
    assert f"thumbnail-{ID}: new\nBaseline written: {stored}\n" in recorded.stdout
    assert list(json.loads(stored.read_text("utf-8"))["scenarios"]) == [ID]

    judged = again.run(folder, *SMALL, *QUICK)
    assert judged.returncode == 0, judged.stdout
    assert "1 judged: 1 passed, 0 failed, 0 undecided" in judged.stdout


def test_without_the_line_it_is_not_in_effect(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = FILES["my_techniques.py"]
    assert code.count(LINE) == 1
    (tmp_path / "my_techniques.py").write_text(code.replace(LINE, ""), encoding="utf-8")
    said = re.findall(rf"^storybook-{ID}: not in effect: (.+)$", PAGE, re.M)
    with nothing_kept(monkeypatch):
        catalogues.load([tmp_path / "my_techniques.py", folder / "my_workloads.py"])
        assert [observe(find_scenario("thumbnail", ID), CpuDevice()).inactive] == said


def test_the_error_that_it_shows_is_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "my_techniques.py"
    path.write_text(FILES[path.name].replace(f"def {ID}", "def bf16"), encoding="utf-8")
    (shown,) = re.findall(r"^--perf-catalogue /home/me(/.+)$", PAGE, re.M)
    with nothing_kept(monkeypatch), pytest.raises(SettingsError) as caught:
        catalogues.load([path])
    assert str(caught.value) == f"--perf-catalogue {tmp_path}{shown}"
