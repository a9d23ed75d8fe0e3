"""A change is compared where it can be seen, and fails as it was asked to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fixtures.commands.compare import __main__ as command
from fixtures.commands.compare import side
from fixtures.commands.compare.requirements import Requirements
from fixtures.records.counts import HOST_CALLS, Counts, Row
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.scenarios import Scenario, scenarios
from tests.support.fake_side import FakeWorker, in_process

FLUX, ATTENTION, HOOKS = (f"diffusers/{name}.py" for name in ("flux", "attention", "hooks/cache"))
OF_BASE = {FLUX: "a", ATTENTION: "a", HOOKS: "a"}
RUN = {"flux": "call", "chroma": "other", "z-image": "call"}
CACHES = {"flux-mag_cache": 2, "flux-taylorseer_cache": 1}
SIDES = ["--base", "diffusers==0.42.1", "--head", "diffusers==0.42.1", "--perf-device", "simulated"]
Run = Callable[..., int]


class Library(FakeWorker):
    """Of three files, and what runs them."""

    of_head: Mapping[str, str] = OF_BASE

    def ask(self, action: str, expected: type, scenario: Scenario | None = None) -> Any:
        if action == "files":
            return OF_BASE if self.side == "base" else self.of_head
        if action != "functions" or scenario is None:
            return super().ask(action, expected, scenario)
        name = scenario.workload.name
        if name == "ltx2":
            raise ScenarioError(scenario.id, Outcome.BROKEN, "it does not load")
        functions = Counter({Row(HOST_CALLS, "call", ATTENTION): 1})
        functions |= {Row(HOST_CALLS, RUN[name], FLUX): 1} if name in RUN else {}
        caching = range(CACHES.get(scenario.id, 0))
        return Counts.of(functions | {Row(HOST_CALLS, f"{n}", HOOKS): 1 for n in caching})


@pytest.fixture
def compare(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command on a head of this kind, whose files differ as told; its exit code."""
    in_process(monkeypatch)
    monkeypatch.setattr(side, "Worker", Library)
    kinds: list[str] = []

    @contextmanager
    def environment(requirements: Requirements) -> Iterator[Path]:
        yield Path(kinds.pop(0))

    monkeypatch.setattr(side, "environment", environment)
    every = lambda settings, *_: scenarios(settings.workloads or ["storybook"])  # noqa: E731
    monkeypatch.setattr(command, "selected", every)

    def run(*options: str, head: str = "sound", **differing: str) -> int:
        kinds[:] = ["sound", head]
        names = {"flux": FLUX, "attention": ATTENTION, "hooks": HOOKS, "new": "diffusers/new.py"}
        changed = {names[key]: digest for key, digest in differing.items()}
        monkeypatch.setattr(Library, "of_head", OF_BASE | changed)
        return command.main([*SIDES, "--metric", "counts", "--metric", "images", *options])

    return run


def test_only_what_runs_a_file_that_differs_is_compared(
    compare: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    report = ("--perf-report", str(tmp_path))
    assert compare("--changed", *report, new="b") == 0
    assert "no scenario runs a file that differs\n" in capsys.readouterr().out
    assert (tmp_path / "summary.md").read_text() == "no scenario runs a file that differs\n"
    # Of few workloads: each of them, but none of those whose functions are another one's.
    assert compare("--changed", flux="b") == 0
    said = capsys.readouterr().out
    assert f"flux-bf16, chroma-bf16: runs {FLUX}\n2 of " in said
    assert "2 scenarios compared, 0 not" in said
    # Shared: one of each kind and family; of no workload's own, where a technique runs it.
    assert compare("--changed", attention="b", hooks="b") == 0
    said = capsys.readouterr().out
    assert f"sd15-fp16: runs {ATTENTION}, the first of kind single\n" in said
    assert f"flux-mag_cache: runs {ATTENTION} and 1 more, the most of caching\n" in said
    assert "taylorseer" not in said
    assert "the most of precision" not in said
    assert "ltx2" not in said


def test_a_regression_is_a_warning_if_asked_and_what_is_broken_fails(
    compare: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare("--exact", head="more") == 1
    assert "warning" not in capsys.readouterr().out
    assert compare("--exact", "--warn", head="more") == 0
    assert " 1. warning: regression: mm +1" in capsys.readouterr().out
    for kind in ("broken", "idle", "wide"):
        assert compare("--exact", "--warn", head=kind) == 1
