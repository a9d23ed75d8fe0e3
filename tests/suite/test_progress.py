"""What is said while a run goes on: what it tests, against what, and what begins."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.suite.test_judged import run as judged
from tests.support import fake_bench
from tests.support.running import run_here

# One does not run here, and one test is of no scenario.
TWO = ("-k", "[storybook-bf16] or [storybook-sdpa] or [storybook-xformers] or has_a_scenario")
TABLE = "Name (time in"
"""Of pytest-benchmark."""
RECORD = ("--perf-update-baselines", "--perf-reason", "test")


def run(folder: Path, *options: str, **environment: str) -> list[str]:
    """The lines of a fake run against the folder's baselines."""
    return judged(folder, *TWO, *options, **environment).stdout.splitlines()


def begun(lines: list[str]) -> list[str]:
    """What began."""
    return [line for line in lines if re.fullmatch(r"\[ *\d+/\d+\] \w+ \S+", line)]


def test_a_log_says_what_is_tested_what_begins_and_at_once_what_fails(tmp_path: Path) -> None:
    lines = run(tmp_path, *RECORD)
    assert begun(lines) == ["[1/2] recording storybook-bf16", "[2/2] recording storybook-sdpa"]
    assert not any(line.startswith("against: ") for line in lines)
    stored = tmp_path / fake_bench.KEY / "storybook.json"
    text = stored.read_text(encoding="utf-8")
    stored.write_text(re.sub(r'"diffusers": "[^"]*"', '"diffusers": "0.36.0"', text))

    lines = run(tmp_path, FAKE_CALLS="storybook-bf16")
    assert begun(lines) == [
        *("[1/2] measuring storybook-bf16", "[2/2] measuring storybook-sdpa"),
        *("[1/2] timing storybook-bf16", "[2/2] timing storybook-sdpa"),
    ]
    tested = [number for number, line in enumerate(lines) if line.startswith("under test: ")]
    assert len(tested) == 2  # before anything is measured, and above the table
    assert re.search("diffusers [0-9.]+, torch .* on fake .Testron 9000.", lines[tested[0]])
    assert all("changed since: diffusers 0.36.0 -> " in lines[number + 1] for number in tested)
    test = "perf_tests/test_host_calls.py::test_host_calls[storybook-bf16]"
    timing = [n for n, line in enumerate(lines) if line.startswith("[1/2] timing storybook-bf16")]
    assert lines.index(f"failed: {test}") < timing[0]
    assert any(line.startswith(f"FAILED {test} - ") for line in lines)  # pytest's own, at the end
    assert not any(re.match(r"perf_tests/\S+ [.sF]+", line) for line in lines)  # no dots
    assert not any(TABLE in line for line in lines)


def test_nothing_is_said_with_q_and_what_pytest_says_itself_where_it_is_asked_for(
    recorded: Path,
) -> None:
    assert not begun(run(recorded, "-q"))
    lines = run(recorded, "-v", "--benchmark-sort=name")
    assert not begun(lines)
    assert any("test_latency[storybook-sdpa] PASSED" in line for line in lines)
    assert any(TABLE in line for line in lines)


@pytest.mark.long
def test_workers_say_it_once(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    alone, shared = run(tmp_path, *RECORD), run(tmp_path, *RECORD, "-n", "2")
    assert sorted(line[5:] for line in begun(shared)) == sorted(line[5:] for line in begun(alone))
    assert sum(line.startswith("under test: ") for line in shared) == 2


def test_tests_of_anything_else_keep_their_dots() -> None:
    result = run_here(*fake_bench.PLUGIN, "-k", "covering", tests="tests/suite/test_selecting.py")
    assert re.search(r"test_selecting.py \.+", result.stdout)
