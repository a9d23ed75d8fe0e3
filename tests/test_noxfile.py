"""nox's sessions: one environment for everything that measures, and light ones for the rest."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

import pytest
from nox import project
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import noxfile
from tests.support.programs import printed

REPOSITORY = Path(__file__).parent.parent
PYPROJECT = project.load_toml(REPOSITORY / "pyproject.toml")
MODULES = ("pytest", *(f"fixtures.commands.{name}" for name in ("compare", "bisect", "report")))
"""Everything that a session of the noxfile runs with `python -m`."""
TELL = """
import json, sys
from importlib import metadata
print("ran", json.dumps([sys.executable, metadata.version("subject"), sys.argv[1:]]))
"""

IMPORT_THE_REPORT = """
import importlib, json, pkgutil, sys
before = set(sys.modules)
import fixtures.commands.report, fixtures.report
for module in pkgutil.iter_modules(fixtures.report.__path__):
    importlib.import_module(f"fixtures.report.{module.name}")
print(json.dumps(sorted({name.partition(".")[0] for name in set(sys.modules) - before})))
"""


class Project:
    """This repository's noxfile in a folder of its own, whose one requirement is `subject`.

    The modules that sessions run say which interpreter runs them, which version of `subject` they
    find there, and with which arguments.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copy(REPOSITORY / "noxfile.py", folder)
        (folder / "constraints.txt").write_text("# none\n", encoding="utf-8")
        subject = json.dumps(f"subject @ {self.wheel('1.0').as_uri()}")
        (folder / "pyproject.toml").write_text(
            f"[project]\ndependencies = [{subject}]\n"
            f"[dependency-groups]\nperf = []\ncompare = []\nreport = [{subject}]\n",
            encoding="utf-8",
        )
        for module in MODULES:
            package = folder.joinpath(*module.split("."))
            package.mkdir(parents=True, exist_ok=True)
            (package / "__main__.py").write_text(TELL, encoding="utf-8")

    def wheel(self, version: str) -> Path:
        """A wheel of `subject`."""
        path = self.folder / f"subject-{version}-py3-none-any.whl"
        about = f"subject-{version}.dist-info"
        with zipfile.ZipFile(path, "w") as wheel:
            wheel.writestr(
                f"{about}/METADATA", f"Metadata-Version: 2.1\nName: subject\nVersion: {version}\n"
            )
            wheel.writestr(
                f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            wheel.writestr(f"{about}/RECORD", "")
        return path

    def nox(self, *arguments: str) -> tuple[list[Any], str]:
        """Every [interpreter, version, arguments] that the sessions told, and nox's own words."""
        own = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("NOX", "PYTEST_", "PIP_"))
        }
        done = subprocess.run(
            [sys.executable, "-m", "nox", *arguments],
            cwd=self.folder,
            env={**own, "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        told = [
            line.removeprefix("ran ") for line in done.stdout.splitlines() if line[:4] == "ran "
        ]
        return [json.loads(line) for line in told], done.stderr

    def install(self, python: str, version: str) -> None:
        """What a user does by hand."""
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--no-index", str(self.wheel(version))],
            check=True,
            timeout=300,
        )


@pytest.fixture
def toy(tmp_path: Path) -> Project:
    return Project(tmp_path)


@dataclass
class Session:
    """What a session of the noxfile is given: it runs nothing and keeps what it is asked to run."""

    cache_dir: Path
    posargs: Sequence[str] = ()
    ran: list[tuple[str, ...]] = field(default_factory=list)
    env: Mapping[str, str] = field(default_factory=dict)

    def run(self, *command: str, env: Mapping[str, str] | None = None, **_: float) -> None:
        """Keep a command and the variables that it is given."""
        self.env = env or {}
        self.ran.append(command)

    def install(self, *requirements: str) -> None:
        """Install nothing."""

    def error(self, sentence: str) -> NoReturn:
        """Fail as nox does."""
        raise RuntimeError(sentence)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], ["-m", "not long"]),
        (["-k", "ledger", "--maxfail=1"], ["-m", "not long", "-k", "ledger", "--maxfail=1"]),
        (["-m", "long", "-x"], ["-m", "long", "-x"]),
        (["-mlong or not long"], ["-mlong or not long"]),
    ],
)
def test_the_tests_are_the_short_ones_unless_others_are_asked_for(
    options: list[str], expected: list[str], tmp_path: Path
) -> None:
    session = Session(tmp_path, options)
    noxfile.tests(session)
    [command] = session.ran
    assert list(command[command.index("--benchmark-disable") + 1 :]) == expected


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("perf", ["pytest", "perf_tests"]),
        ("refresh", ["pytest", "perf_tests", "--perf-update-baselines"]),
        *((name, [f"fixtures.commands.{name}"]) for name in ("compare", "bisect", "fit")),
    ],
)
def test_everything_that_measures_runs_in_one_environment(
    name: str, command: list[str], tmp_path: Path
) -> None:
    session = Session(tmp_path, ["-k", "[storybook-fp16]"])
    measure = getattr(noxfile, name)
    assert measure.requires == ["environment"]
    assert importlib.util.find_spec(command[0]) is not None
    with pytest.raises(RuntimeError, match="nox -s environment"):
        measure(session)
    (tmp_path / noxfile.SHARED_PYTHON).write_text("the/shared/python")
    measure(session)
    assert session.ran == [("the/shared/python", "-m", *command, "-k", "[storybook-fp16]")]


@pytest.mark.long
def test_sessions_share_what_one_or_a_user_installed_until_requirements_change(
    toy: Project,
) -> None:
    told, words = toy.nox("-s", "perf", "refresh", "compare", "bisect")
    [python] = {python for python, _, _ in told}
    assert [version for _, version, _ in told] == ["1.0"] * 4
    assert words.count("pip install") == 1
    toy.install(python, "2.0")
    told, words = toy.nox("-s", "perf", "refresh")
    assert [version for _, version, _ in told] == ["2.0", "2.0"]
    assert "pip install" not in words
    (toy.folder / "constraints.txt").write_text("# changed\n", encoding="utf-8")
    [[_, unchanged, _]], _ = toy.nox("--no-install", "-s", "perf")
    assert unchanged == "2.0"
    told, words = toy.nox("-s", "perf")
    assert told == [[python, "1.0", ["perf_tests"]]]
    assert "requirements changed" in words
    _, words = toy.nox("-s", "perf")
    assert "pip install" not in words


@pytest.mark.long
@pytest.mark.parametrize("twice", [False, True], ids=["SIGTERM", "Ctrl-C twice"])
def test_a_session_that_is_ended_ends_what_it_runs(toy: Project, *, twice: bool) -> None:
    """nox dies of both and what it runs goes on, or is killed after half a second."""
    toy.nox("-s", "perf")
    ends = "try: time.sleep(60)\nexcept KeyboardInterrupt: time.sleep(2); print('in order')\n"
    (toy.folder / "pytest" / "__main__.py").write_text(
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.default_int_handler)\n"
        f"print('started', flush=True)\n{ends}",
        encoding="utf-8",
    )
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "nox", "-s", "perf"],
        cwd=toy.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as nox:
        assert nox.stdout is not None
        next(line for line in nox.stdout if line == "started\n")
        for number in (signal.SIGINT, signal.SIGINT) if twice else (signal.SIGTERM,):
            nox.send_signal(number)
            time.sleep(0.5)
        assert "in order" in nox.communicate(timeout=300)[0]


@pytest.mark.long
def test_the_report_has_an_environment_of_its_own_also_where_nox_shortens_the_path(
    toy: Project,
) -> None:
    folder = "long".ljust(80, "-")
    told, words = toy.nox("--envdir", folder, "-s", "perf", "report")
    (measuring, _, _), (rendering, _, arguments) = told
    assert Path(measuring).is_relative_to(toy.folder / folder)
    assert "virtualenv name was hashed" in words
    assert measuring != rendering
    assert arguments == ["--help"]


def test_a_report_and_lint_install_no_torch() -> None:
    requirements = project.dependency_groups(PYPROJECT, "report")
    assert set(requirements) <= set(PYPROJECT["project"]["dependencies"])
    report = closure(requirements)
    assert {"pydantic", "jinja2"} <= report
    assert "torch" not in report
    assert "torch" in closure(["accelerate"])
    lint = project.dependency_groups(PYPROJECT, "lint")
    assert not {"torch", "diffusers"} & {Requirement(text).name for text in lint}


def test_a_report_imports_only_what_its_environment_has() -> None:
    report = closure(project.dependency_groups(PYPROJECT, "report"))
    packages = metadata.packages_distributions()
    imported = {
        canonicalize_name(name)
        for module in json.loads(printed(IMPORT_THE_REPORT))
        for name in packages.get(module, ())
    }
    declared = {
        canonicalize_name(Requirement(text).name) for text in PYPROJECT["project"]["dependencies"]
    }
    assert "pydantic" in imported
    assert imported & declared <= report


def closure(requirements: Iterable[str]) -> set[str]:
    """The names of these requirements and of everything they need, as installed here."""
    names: set[str] = set()
    waiting = [Requirement(need) for need in requirements]
    while waiting:
        need = waiting.pop()
        name = canonicalize_name(need.name)
        if name in names or (need.marker is not None and not need.marker.evaluate({"extra": ""})):
            continue
        names.add(name)
        try:
            waiting += [Requirement(text) for text in metadata.requires(need.name) or ()]
        except metadata.PackageNotFoundError:
            continue  # of another platform
    return names
