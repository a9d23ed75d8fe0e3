"""What may run on a self-hosted runner: GitHub's rules for a workflow, read from its file."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

WORKFLOWS = sorted((Path(__file__).parents[1] / ".github/workflows").glob("*.yml"))
LABELLED = "pull_request"


def content(path: Path) -> dict[Any, Any]:
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


PERF = content(next(path for path in WORKFLOWS if path.name == "perf.yml"))


def runs(job: str, event: str, *, label: str = "", refresh: bool = False) -> bool:
    """Whether a job runs, of which the condition is one of Python in other signs."""
    words = " ".join(PERF["jobs"][job]["if"].split())
    for sign, word in (("!=", "<>"), ("&&", " and "), ("||", " or "), ("!", " not "), ("<>", "!=")):
        words = words.replace(sign, word)
    found = SimpleNamespace(label=SimpleNamespace(name=label))
    known = {
        "inputs": SimpleNamespace(refresh=refresh),
        "github": SimpleNamespace(event_name=event, event=found),
    }
    return bool(eval(words, {"__builtins__": {}}, known))  # noqa: S307


def test_a_push_to_a_pull_request_starts_nothing_on_the_runner() -> None:
    events = PERF[True]  # YAML reads `on` as true
    assert events["pull_request"] == {"types": ["labeled"]}
    assert events.keys() == {"schedule", "pull_request", "workflow_dispatch"}


def test_each_run_of_a_pull_request_is_a_decision_of_its_own() -> None:
    assert runs("measure", LABELLED, label="perf")
    # With `perf` set before, this would run what was pushed since.
    assert not runs("measure", LABELLED, label="bug")
    assert not runs("refresh", LABELLED, label="perf")
    assert runs("measure", "schedule")
    assert runs("measure", "workflow_dispatch")
    assert not runs("measure", "workflow_dispatch", refresh=True)
    assert runs("refresh", "workflow_dispatch", refresh=True)


def test_the_commits_are_those_of_the_decision_and_get_no_credentials() -> None:
    (checkout,) = (
        step for step in PERF["jobs"]["measure"]["steps"] if "checkout" in step.get("uses", "")
    )
    assert checkout["with"] == {"persist-credentials": False}  # so `ref` is the event's own commit
    assert PERF["permissions"] == {"contents": "read"}
    assert "permissions" not in PERF["jobs"]["measure"]


def test_jobs_that_wait_for_one_card_wait_for_each_other() -> None:
    groups = {job["concurrency"]["group"] for job in PERF["jobs"].values()}
    assert len(groups) == 1
    assert "concurrency" not in PERF  # a label that decides nothing would replace a waiting run


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_other_workflow_reaches_the_runner_or_the_secrets(path: Path) -> None:
    found = content(path)
    assert "pull_request_target" not in found[True]
    if path.name != "perf.yml":
        for job in found["jobs"].values():
            assert "self-hosted" not in str(job["runs-on"])
