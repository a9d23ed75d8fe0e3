"""What is being measured right now, on a terminal: shown there, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

import pytest

from fixtures.settings import REPOSITORY
from fixtures.suite.live import duration, so_far
from tests.support import fake_bench
from tests.support.running import own_environment, run_suite
from tests.support.runs import timing

pty = pytest.importorskip("pty", reason="a pseudo-terminal needs a POSIX system")
ONE = "test_latency and [storybook-sdpa]"


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Of a fake run that judges a latency against a baseline."""
    folder = str(tmp_path_factory.mktemp("baselines"))
    options = (*fake_bench.OPTIONS, "--perf-baselines", folder)
    refresh = ("--perf-update-baselines", "--perf-reason", "test", "-k", "storybook-sdpa")
    seen = on_a_terminal((*options, *refresh))
    assert "storybook-sdpa: sample 6 of 6, latency ratio " in seen
    assert " left" in seen
    return (*options, "-k", ONE)


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


def test_a_terminal_shows_the_observed_call_and_the_round(options: tuple[str, ...]) -> None:
    seen = on_a_terminal(options)
    assert "storybook-sdpa: one observed call" in seen
    assert "storybook-sdpa: latency, round 16 of 16" in seen
    assert "\x1b[" in seen


def test_a_quiet_run_on_a_terminal_shows_neither_round_nor_table(options: tuple[str, ...]) -> None:
    seen = on_a_terminal((*options, "-q"))
    assert "latency, round" not in seen
    assert "speed-up" not in seen
    assert "1 judged: 1 passed" in seen


def test_a_log_file_gets_no_live_line(options: tuple[str, ...]) -> None:
    result = run_suite(*options)
    assert result.returncode == 0, result.stdout
    assert "latency, round" not in result.stdout
    assert "speed-up [95 %]" in result.stdout
    assert "\x1b[" not in result.stdout


def test_the_ratio_so_far_has_its_interval_and_before_the_first_sample_there_is_none() -> None:
    assert so_far([]) == ""
    assert so_far([timing(1.25)] * 2).startswith(", latency ratio 1.250 [1.1")


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (89.4, "89 s"), (90.0, "2 min"), (3600.0, "60 min")]
)
def test_a_duration_is_said_in_seconds_or_minutes(seconds: float, words: str) -> None:
    assert duration(seconds) == words
