"""A run that is killed leaves neither a process nor a file."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from fixtures.settings import REPOSITORY
from tests.support.running import own_environment

LIMIT_S = 300.0
ENDS = (signal.SIGKILL, signal.SIGTERM)
RUN = """
import subprocess, tempfile, time
from fixtures.measuring.leftovers import leave_nothing
leave_nothing()
tempfile.mkdtemp(prefix="left-")
deaf = "trap '' TERM INT; echo deaf; while :; do sleep 60; done"
with subprocess.Popen(["sh", "-c", deaf], stdout=subprocess.PIPE, start_new_session=True) as child:
    child.stdout.readline()
    print("started", flush=True)
    time.sleep(600)
"""
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="nothing is removed there")


def until(holds: Callable[[], bool]) -> None:
    """Wait for it."""
    until_s = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < until_s
        time.sleep(0.05)


def processes_in(folder: Path) -> list[psutil.Process]:
    """Those that were started with temporary files there."""
    return [
        process
        for process in psutil.process_iter(["environ"])
        if (process.info["environ"] or {}).get("TMPDIR", "").startswith(str(folder))
    ]


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder for temporary files; a socket's path there is no longer than it may be."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
        for process in processes_in(Path(folder)):
            process.kill()


def ended(run: subprocess.Popen[str], by: signal.Signals, temporary: Path) -> str:
    """What a run said that is ended so, when nothing is there any more that was."""
    assert list(temporary.iterdir())
    assert len(processes_in(temporary)) > 1
    run.send_signal(by)
    output = run.communicate(timeout=LIMIT_S)[0]
    until(lambda: not list(temporary.iterdir()) and not processes_in(temporary))
    return output


@pytest.mark.parametrize("by", ENDS)
def test_what_it_started_and_wrote_goes_with_a_process_and_nothing_else(
    by: signal.Signals, temporary: Path
) -> None:
    environment = {**own_environment(), "TMPDIR": str(temporary)}
    command = [sys.executable, "-c", RUN]
    with (
        subprocess.Popen(["sleep", "600"], env={"PATH": "/usr/bin:/bin"}) as other,
        subprocess.Popen(
            command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, text=True
        ) as run,
    ):
        assert run.stdout is not None
        run.stdout.readline()
        (folder,) = temporary.iterdir()
        assert [path.name[:5] for path in folder.iterdir()] == ["left-"]
        ended(run, by, temporary)
        assert other.poll() is None
        other.kill()


@pytest.mark.long
def test_a_run_that_is_terminated_while_it_times_leaves_nothing(
    temporary: Path, tmp_path: Path
) -> None:
    # Not of bf16, which is timed where the processor computes it alone.
    words = ("-k", "test_latency and [storybook-attention_slicing]", "--perf-device", "cpu")
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", "perf_tests", *words],
        cwd=REPOSITORY,
        env={
            **own_environment(),
            "TMPDIR": str(temporary),
            "TORCHINDUCTOR_CACHE_DIR": str(tmp_path),  # which is kept
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as run:
        for left in ("pymp-*", "perf-process-*"):
            until(lambda left=left: bool(list(temporary.rglob(left))))  # type: ignore[misc]
        output = ended(run, signal.SIGTERM, temporary)
    assert run.returncode == pytest.ExitCode.INTERRUPTED
    assert "KeyboardInterrupt" in output
