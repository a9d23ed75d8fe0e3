"""What is being measured right now, on a terminal: shown there, and nowhere else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence

import pytest

from tests.running import REPOSITORY, own_environment, run_suite

pty = pytest.importorskip("pty", reason="a pseudo-terminal needs a POSIX system")
ONE = ("-k", "test_latency and [storybook-sdpa]", "--perf-budget=0")
ROUND = re.compile(
    r"storybook-sdpa: latency, round (\d+) of \1, latency ratio [01]\.\d{3} \[[\d., ]+\]"
)


def on_a_terminal(arguments: Sequence[str]) -> str:
    """The output of a run whose standard output is a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", "perf_tests", *arguments],
        cwd=REPOSITORY,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**own_environment(), "TERM": "xterm-256color"},
    ) as run:
        os.close(theirs)
        seen = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # Linux: the other side was closed
                break
            if not part:
                break
            seen += part
        os.close(ours)
    assert run.returncode == 0, seen.decode()
    return seen.decode()


def test_a_terminal_shows_the_round_and_the_interval_so_far() -> None:
    seen = on_a_terminal(ONE)
    assert "storybook-sdpa: one observed call" in seen
    assert ROUND.search(seen)
    assert "\x1b[" in seen


def test_a_quiet_run_on_a_terminal_shows_neither_round_nor_table() -> None:
    seen = on_a_terminal((*ONE, "-q"))
    assert "latency, round" not in seen
    assert "speed-up" not in seen
    assert "scenarios: 1 judged" in seen


def test_a_log_file_gets_no_live_line() -> None:
    result = run_suite(*ONE)
    assert result.returncode == 0, result.stdout
    assert "latency, round" not in result.stdout
    assert "speed-up [95 %]" in result.stdout
    assert "\x1b[" not in result.stdout
