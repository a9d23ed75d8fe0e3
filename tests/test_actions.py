"""The actions that other repositories use: inputs, words of commands, and what is cached."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from fixtures.commands.compare.command_line import parsed
from fixtures.settings import REPOSITORY
from tests.test_noxfile import Project

ACTIONS = {path.parent.name: path for path in REPOSITORY.glob(".github/actions/*/action.yml")}
SESSION = REPOSITORY / ".github/actions/session.py"
USES = re.compile(r"(?:\.|OWNER/diffusers-perf)/\.github/actions/(\w+)(?:@\w+)?$")
INPUT = re.compile(r"\binputs\.([\w-]+)")
REQUIREMENTS = ("pyproject.toml", "constraints.txt", "noxfile.py")
NASTY = 'sd15\'; $(touch x) `id` "$HOME" && exit #'


def content(name: str) -> Any:
    return yaml.safe_load(ACTIONS[name].read_text(encoding="utf-8"))


def steps(name: str) -> list[dict[str, Any]]:
    return list(content(name)["runs"]["steps"])


def workflows() -> Iterator[tuple[str, dict[Any, Any]]]:
    """Every workflow of this repository, and every one that a page shows."""
    for path in REPOSITORY.glob("*/workflows/*.yml"):
        yield path.name, yaml.safe_load(path.read_text(encoding="utf-8"))
    for page in (*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/*.md")):
        for block in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            if "\njobs:" in f"\n{block}":
                yield page.name, yaml.safe_load(block)


def used() -> list[tuple[str, str, dict[str, str]]]:
    """Where an action is used, which, and with what."""
    return [
        (where, match[1], step.get("with", {}))
        for where, workflow in workflows()
        for job in workflow["jobs"].values()
        for step in job["steps"]
        if (match := USES.match(step.get("uses", "")))
    ]


@pytest.mark.parametrize("name", ["perf", "compare"])
def test_an_input_is_described_of_use_and_no_word_of_a_shell_and_a_report_is_always_there(
    name: str,
) -> None:
    action = content(name)
    assert set(INPUT.findall(str(action["runs"]))) == action["inputs"].keys()
    for declared in action["inputs"].values():
        assert declared["description"]
        assert declared.get("required", False) != ("default" in declared)
    scripts = [step["run"] for step in steps(name) if "run" in step]
    assert scripts
    for script in scripts:
        assert "${{" not in script
        subprocess.run(["bash", "-n", "-c", script], check=True)
    for step in steps(name):
        assert ("run" in step) == ("shell" in step)
    last = steps(name)[-1]
    assert last["uses"].startswith("actions/upload-artifact@")
    assert last["if"] == "always()"


def test_workflows_and_pages_pass_what_the_actions_take() -> None:
    uses = used()
    assert {where for where, *_ in uses} >= {
        *("checks.yml", "nightly.yml", "perf.yml", "performance.yml", "runners.md")
    }
    for where, name, given in uses:
        inputs = content(name)["inputs"]
        required = {key for key, declared in inputs.items() if declared.get("required")}
        assert required <= given.keys() <= inputs.keys(), where


def test_what_a_workflow_installs_is_in_no_cache() -> None:
    order = [step.get("uses", step.get("run", "")) for step in steps("perf")]
    (saved,) = (place for place, what in enumerate(order) if "cache/save" in what)
    assert order[saved - 1].endswith(" environment")
    assert order[saved + 1].endswith(" perf")
    assert not [what for what in order if what.startswith("actions/cache@")]


# What the steps run

Do = Callable[..., list[list[str]]]


@pytest.fixture
def session() -> Any:
    spec = importlib.util.spec_from_file_location("session", SESSION)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def do(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Do:
    """Does a step with the variables that its action passes it; returns the commands."""
    commands: list[list[str]] = []

    def run(command: Any, **_: Any) -> SimpleNamespace:
        commands.append([*command])
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(subprocess, "run", run)
    for name in ("GITHUB_WORKSPACE", "RUNNER_TEMP", "NOX_ENVDIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
        (tmp_path / name).mkdir()
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))

    def do(action: str, step: str, **inputs: str) -> list[list[str]]:
        declared = content(action)["inputs"]
        values = {key: each.get("default", "") for key, each in declared.items()} | inputs
        (run_step,) = (
            each for each in steps(action) if each.get("run", "").endswith(f'session.py" {step}')
        )
        for variable in ("DEVICE", "WORKLOAD", "SELECT", "INSTALL", "REPORT", "ARGUMENTS"):
            monkeypatch.delenv(variable, raising=False)
        for variable, value in run_step["env"].items():
            (key,) = INPUT.findall(value)
            monkeypatch.setenv(variable, values[key])
        assert session.STEPS[step.split()[0]](*step.split()[1:]) == 0
        return commands

    return do


def test_perf_passes_each_input_as_a_word(do: Do, tmp_path: Path) -> None:
    given = {"workload": "sd15 flux", "select": NASTY, "arguments": '--perf-reason "a b" -n 2'}
    (command,) = do("perf", "perf", device="simulated", **given)
    report = tmp_path / "GITHUB_WORKSPACE" / "performance"
    noxfile = str(REPOSITORY / "noxfile.py")
    assert command[:7] == [sys.executable, "-m", "nox", "-f", noxfile, "-s", "perf"]
    assert command[7:] == [
        *("--", "--perf-report", str(report), "--junitxml", str(report / "junit.xml")),
        *("--perf-device", "simulated", "--perf-workload", "sd15", "--perf-workload", "flux"),
        *("-k", NASTY, "--perf-reason", "a b", "-n", "2"),
    ]
    assert report.is_dir()


def test_what_a_workflow_installs_goes_into_the_environment_that_is_measured(
    do: Do, tmp_path: Path
) -> None:
    told = tmp_path / "NOX_ENVDIR" / ".cache" / "environment-python"
    told.parent.mkdir()
    told.write_text("the/shared/python")
    install, measure = do("perf", "perf", install="-e '.[a b]'")
    pip = ["the/shared/python", "-m", "pip", "install", "--upgrade"]
    assert install == [*pip, "-e", ".[a b]"]
    assert "perf" in measure


def test_a_comparison_takes_folders_of_the_workspace_and_requirements(
    do: Do, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "GITHUB_WORKSPACE"
    for reference in ("refs/heads/main", "refs/pull/1;id/merge", ""):
        monkeypatch.setenv("GITHUB_REF", reference)
        do("perf", "perf")
        assert not list((workspace / "performance").iterdir()), "only a pull request has a number"
    monkeypatch.setenv("GITHUB_REF", "refs/pull/4711/merge")
    (workspace / "my head").mkdir()
    sides = {"base": "diffusers==0.36.0 torch==2.12.0", "head": "'my head' transformers"}
    *_, command = do("compare", "compare", select=NASTY, **sides)
    options = parsed(command[command.index("--") + 1 :], None)
    assert options.base == ["diffusers==0.36.0", "torch==2.12.0"]
    assert options.head == [str(workspace / "my head"), "transformers"]
    assert options.keyword == NASTY
    assert options.perf_device == "simulated"
    assert options.warn
    *_, command = do("compare", "compare", strict="true", **sides)
    assert "--warn" not in command
    report = workspace / "performance"
    assert options.perf_report == str(report)
    assert (report / "pull-request").read_text() == "4711\n"


@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        ({"head": "'my head"}, 'head: "\'my head" has No closing quotation; close the quotation'),
        ({"head": "x", "arguments": '"'}, "arguments: '\"' has No closing quotation; close"),
        ({"head": "x", "strict": "yes"}, "strict: 'yes' is neither true nor false; give one"),
        ({"head": "x", "report": "a-file"}, "a-file cannot be made (File exists); give another"),
    ],
)
def test_what_cannot_be_read_or_made_is_refused_in_a_sentence(
    do: Do, tmp_path: Path, inputs: dict[str, str], sentence: str
) -> None:
    (tmp_path / "GITHUB_WORKSPACE" / "a-file").touch()
    with pytest.raises(SystemExit) as caught:
        do("compare", "compare", **{"base": "diffusers", **inputs})
    assert sentence in str(caught.value)
    *_, command = do("compare", "compare", base="diffusers", head="x" * 300)
    assert "x" * 300 in command


def test_packages_are_for_the_device_unless_the_runner_says_otherwise(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in session.CPU_WHEELS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DEVICE", "simulated")
    assert session.variables().items() >= session.CPU_WHEELS.items()
    monkeypatch.setenv("UV_TORCH_BACKEND", "cu128")
    assert session.variables()["UV_TORCH_BACKEND"] == "cu128"
    monkeypatch.delenv("UV_TORCH_BACKEND")
    monkeypatch.setenv("DEVICE", "cuda")
    assert not session.variables().keys() & session.CPU_WHEELS.keys()


def test_another_environment_has_another_key(
    session: Any, do: Do, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = tmp_path / "suite"
    suite.mkdir()
    for name in REQUIREMENTS:
        shutil.copy(REPOSITORY / name, suite)
    monkeypatch.setattr(session, "SUITE", suite)

    def key(action: str = "perf", device: str = "cpu") -> str:
        do(action, f"prepare {action}", device=device)
        told = dict(line.split("=", 1) for line in (tmp_path / "output").read_text().split())
        assert told["folder"] == str(tmp_path / "XDG_CACHE_HOME" / "diffusers-perf")
        return told["key"]

    first = key()
    assert key(device="simulated") == first
    keys = [first, key("compare"), key(device="cuda")]
    for name in REQUIREMENTS:
        with (suite / name).open("a") as file:
            file.write("# changed\n")
        keys.append(key())
    assert len(set(keys)) == len(keys)


def test_nox_is_installed_apart_where_there_is_none(
    session: Any, do: Do, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian lets nobody install beside its own packages."""
    made: list[Path] = []
    monkeypatch.setattr(session.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(session.venv, "create", lambda folder, with_pip: made.append(folder))
    (command,) = do("perf", "prepare perf")
    (folder,) = made
    assert folder.is_relative_to(tmp_path / "RUNNER_TEMP")
    assert command == [session.interpreter(), "-m", "pip", "install", "--quiet", "nox"]
    assert Path(command[0]).is_relative_to(folder)


@pytest.mark.long
def test_an_action_measures_from_another_repository_s_folder(tmp_path: Path) -> None:
    """Its steps' own scripts, with a toy in the place of what they install and run."""
    for name in ("suite", "workspace", "temporary"):
        (tmp_path / name).mkdir()
    toy = Project(tmp_path / "suite")
    shutil.copytree(SESSION.parent, toy.folder / ".github/actions")
    passed_on = {
        name: value for name, value in os.environ.items() if not name.startswith(("NOX", "PYTEST_"))
    }
    environment = {
        **passed_on,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "RUNNER_TEMP": str(tmp_path / "temporary"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_WORKSPACE": str(tmp_path / "workspace"),
        "GITHUB_ACTION_PATH": str(toy.folder / ".github/actions/perf"),
    }
    inputs = {key: each["default"] for key, each in content("perf")["inputs"].items()}
    inputs |= {"select": NASTY, "install": shlex.quote(str(toy.wheel("2.0")))}
    for step in steps("perf"):
        if "run" not in step:
            continue
        own = {name: inputs[INPUT.findall(value)[0]] for name, value in step["env"].items()}
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=tmp_path / "workspace",
            env={**environment, **own},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("ran "))
    python, version, arguments = yaml.safe_load(line.removeprefix("ran "))
    assert Path(python).is_relative_to(tmp_path / "cache" / "diffusers-perf")
    assert version == "2.0"
    assert arguments[-2:] == ["-k", NASTY]
    assert not (tmp_path / "workspace" / "x").exists()
