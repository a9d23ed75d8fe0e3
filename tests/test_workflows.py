"""What may run on a self-hosted runner: GitHub's rules for a workflow, read from its file."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from fixtures.commands.compare.__main__ import NOTHING, write_comparison
from fixtures.commands.compare.command_line import parsed
from fixtures.commands.compare.comparing import Comparing
from tests.support.fake_side import fake_side, in_process
from tests.support.scenarios import find_scenario

DOCUMENTED = Path(__file__).parents[1] / "docs/workflows"
WORKFLOWS = sorted((Path(__file__).parents[1] / ".github/workflows").glob("*.yml"))
DOCKERFILE = Path(__file__).parents[1] / ".github/runner/Dockerfile"
LABELLED = "pull_request"


def content(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


PERF = content(next(path for path in WORKFLOWS if path.name == "perf.yml"))


def runs(job: str, event: str, *, label: str = "", refresh: bool = False) -> bool:
    """Whether a job runs, of which the condition is one of Python in other signs."""
    words = " ".join(PERF["jobs"][job]["if"].split())
    for sign, word in (("!=", "<>"), ("&&", " and "), ("||", " or "), ("!", " not "), ("<>", "!=")):
        words = words.replace(sign, word)
    labelled = SimpleNamespace(label=SimpleNamespace(name=label))
    known = {
        "inputs": SimpleNamespace(refresh=refresh),
        "github": SimpleNamespace(event_name=event, event=labelled),
    }
    return bool(eval(words, {"__builtins__": {}}, known))  # noqa: S307


def test_a_push_starts_nothing_and_each_run_of_a_pull_request_is_a_decision_of_its_own() -> None:
    events = PERF[True]  # YAML reads `on` as true
    assert events["pull_request"] == {"types": ["labeled"]}
    assert events.keys() == {"schedule", "pull_request", "workflow_dispatch"}
    assert runs("measure", LABELLED, label="perf")
    # With `perf` set before, this would run what was pushed since.
    assert not runs("measure", LABELLED, label="bug")
    assert not runs("refresh", LABELLED, label="perf")
    assert runs("measure", "schedule")
    assert runs("measure", "workflow_dispatch")
    assert not runs("measure", "workflow_dispatch", refresh=True)
    assert runs("refresh", "workflow_dispatch", refresh=True)


def on_the_runner() -> dict[str, Any]:
    """The jobs of which others' code may have been on the machine before."""
    return {name: job for name, job in PERF["jobs"].items() if "self-hosted" in job["runs-on"]}


def test_what_may_write_runs_nothing_and_never_where_a_pull_request_has_run() -> None:
    assert on_the_runner().keys() == {"measure", "refresh"}
    for job in on_the_runner().values():
        assert "permissions" not in job
        (checkout,) = (step for step in job["steps"] if "checkout" in step.get("uses", ""))
        assert checkout["with"] == {"persist-credentials": False}  # so `ref` is the event's own
    assert PERF["permissions"] == {"contents": "read"}
    (writer,) = (job for job in PERF["jobs"].values() if "permissions" in job)
    assert (writer["runs-on"], writer["needs"]) == ("ubuntu-latest", "refresh")
    words = "".join(step.get("run", "") for step in writer["steps"])
    assert not re.search(r"python|pip|nox", words)
    uploads, downloads = (
        [step["with"] for step in job["steps"] if use in step.get("uses", "")]
        for job, use in ((PERF["jobs"]["refresh"], "/upload-"), (writer, "/download-"))
    )
    assert uploads == downloads == [{"name": "baselines", "path": "baselines"}]


def test_what_is_proposed_is_measured_in_an_environment_that_no_other_job_has_touched() -> None:
    """GitHub empties the runner's temporary folder at the start of each job."""
    (step,) = (step for step in PERF["jobs"]["refresh"]["steps"] if "nox" in step.get("run", ""))
    assert step["env"]["NOX_ENVDIR"] == "${{ runner.temp }}/environments"
    commands = {line.split()[0]: line for line in step["run"].splitlines() if line[0] != " "}
    assert commands.keys() == {"python3", '"$RUNNER_TEMP/own/bin/python"'}
    assert commands["python3"].startswith("python3 -I -m venv ")
    for line in DOCKERFILE.read_text(encoding="utf-8").splitlines():
        assert not line.startswith("VOLUME") or "nox" not in line


def test_jobs_that_wait_for_one_card_wait_for_each_other() -> None:
    groups = {job["concurrency"]["group"] for job in on_the_runner().values()}
    assert len(groups) == 1
    assert "concurrency" not in PERF  # a label that decides nothing would replace a waiting run


def test_no_other_workflow_reaches_the_runner_or_the_secrets() -> None:
    for path in WORKFLOWS:
        workflow = content(path)
        assert "pull_request_target" not in workflow[True]
        jobs = [job for job in workflow["jobs"].values() if "self-hosted" in str(job["runs-on"])]
        assert not jobs or path.name == "perf.yml"


# What the docs offer for a fork of diffusers

COMPARES, COMMENTS = (
    content(DOCUMENTED / f"{name}.yml") for name in ("performance", "performance-comment")
)


def test_what_runs_a_pull_request_can_write_nothing_and_knows_no_secret() -> None:
    assert COMPARES["permissions"] == {"contents": "read"}
    assert COMPARES[True].keys() == {"pull_request"}
    (job,) = COMPARES["jobs"].values()
    assert "permissions" not in job
    (checkout,) = (step for step in job["steps"] if "checkout" in step.get("uses", ""))
    assert checkout["with"]["persist-credentials"] is False
    assert "secrets." not in (DOCUMENTED / "performance.yml").read_text(encoding="utf-8")


def test_what_comments_runs_nothing_of_the_pull_request() -> None:
    assert COMMENTS[True] == {
        "workflow_run": {"workflows": ["performance"], "types": ["completed"]}
    }
    assert COMMENTS["permissions"] == {"actions": "read", "pull-requests": "write"}
    (job,) = COMMENTS["jobs"].values()
    assert not [step for step in job["steps"] if "checkout" in step.get("uses", "")]
    # Whatever an artifact holds is a file's content, and never a word of a command.
    for step in job["steps"]:
        assert "${{" not in step.get("run", "")


Comment = Callable[..., list[str]]


@pytest.fixture
def comment(tmp_path: Path) -> Comment:
    """Runs the script that comments, beside a `gh` which knows the comments of these numbers."""
    (job,) = COMMENTS["jobs"].values()
    script = job["steps"][-1]["run"]
    said = tmp_path / "said"
    path = f"{tmp_path}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COMPARED": "head-of-4711", "GH_REPO": "o/r"}
    (tmp_path / "report").mkdir()

    def run(number: str, summary: str, there: Sequence[int] = (), code: int = 0) -> list[str]:
        numbers = " ".join(map(str, there))
        (tmp_path / "gh").write_text(
            f'#!/bin/sh\ncase "$*" in *view*) echo head-of-$3 ;; '
            f'*paginate*) printf "%s\\n" {numbers} ;; *) echo "$@" >> {said} ;; esac\n'
        )
        (tmp_path / "gh").chmod(0o755)
        (tmp_path / "report" / "pull-request").write_text(number + "\n")
        (tmp_path / "report" / "summary.md").write_text(summary)
        said.write_text("")
        command = ["bash", "-e", "-c", script]
        done = subprocess.run(command, cwd=tmp_path, env=environment, check=False)
        assert done.returncode == code
        return said.read_text().splitlines()

    return run


@pytest.mark.parametrize("number", ["12; rm -rf /", "", "$(id)", "../1", "12 34"])
def test_a_pull_request_s_number_is_a_number_and_that_of_what_was_compared(
    number: str, comment: Comment
) -> None:
    assert comment(number, "1 finding: it", code=1) == []
    assert comment("4712", "1 finding: it") == []
    assert comment("4711", "1 finding: it") == ["pr comment 4711 --body-file body.md"]


def test_there_is_one_comment_and_none_where_nothing_changed(
    comment: Comment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    in_process(monkeypatch)

    def summary(head: str) -> str:
        sides = fake_side("sound", "base"), fake_side(head, "head")
        compared = Comparing(*sides, ["counts"]).run([find_scenario("storybook", "bf16")])
        write_comparison(tmp_path, compared, ["base", "head"])
        return (tmp_path / "summary.md").read_text(encoding="utf-8")

    edited = ["api --method PATCH repos/o/r/issues/comments/9 -F body=@body.md"]
    changed, equal = summary("more"), summary("sound")
    assert comment("4711", changed) == ["pr comment 4711 --body-file body.md"]
    assert (tmp_path / "body.md").read_text() == f"<!-- diffusers-performance -->\n{changed}"
    assert comment("4711", summary("broken")) == ["pr comment 4711 --body-file body.md"]
    for unchanged in (equal, NOTHING):
        assert comment("4711", unchanged) == []
    for each in (changed, equal, NOTHING):
        assert comment("4711", each, there=(9, 12)) == edited


def test_the_documented_comparison_is_of_what_changed_and_its_report_is_read() -> None:
    (job,), (comments,) = (of["jobs"].values() for of in (COMPARES, COMMENTS))
    (inputs,) = (
        step["with"] for step in job["steps"] if "actions/compare@" in step.get("uses", "")
    )
    declared = content(DOCUMENTED.parents[1] / ".github/actions/compare/action.yml")["inputs"]
    assert not inputs.keys() & {"report", "select", "workload"}
    assert comments["steps"][0]["with"]["name"] == declared["report"]["default"]
    assert parsed(["--base", "x", "--head", "x", *inputs["arguments"].split()], None).changed
