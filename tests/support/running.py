"""Run the suite as a user would: here where nothing forbids it, else in a process of its own."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from unittest import mock

import pytest

from fixtures.devices.host import VISIBLE
from fixtures.settings import REPOSITORY
from tests.support.own_catalogue import nothing_kept

TIMEOUT_S = 600
FAKE = "tests.support.fake_bench"
OWN_PROCESS = frozenset({"FAKE_ACCELERATORS", "FAKE_CRASH", "FAKE_HANG"})
"""What ends a process, or is read when it starts."""
NOT_PASSED_ON = ("PYTEST_", "GITHUB_", "CI", "BUILD_NUMBER")


def run_suite(
    *arguments: str, tests: str = "perf_tests", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Call pytest on these tests, with these arguments and environment variables.

    A bench that measures nothing runs here: imports take longer than all it does.
    """
    alone = "-n" in arguments or OWN_PROCESS.intersection(environment)
    if FAKE in arguments and not alone:
        return run_here(*arguments, tests=tests, **environment)
    return subprocess.run(
        [sys.executable, "-m", "pytest", tests, *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env={**own_environment(), **environment},
        check=False,
    )


def run_here(
    *arguments: str, tests: str = "perf_tests", **environment: str
) -> subprocess.CompletedProcess[str]:
    """As `run_suite`, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.dict(os.environ, {**own_environment(), **environment}, clear=True),
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        nothing_kept(patch),
    ):
        patch.chdir(REPOSITORY)
        status = pytest.main([tests, *arguments])
    return subprocess.CompletedProcess(
        (tests, *arguments), int(status), out.getvalue(), err.getvalue()
    )


def own_environment() -> dict[str, str]:
    """This process' environment, with one thread and without an accelerator.

    What pytest-xdist says to its own workers is left out: pytest-benchmark would take the suite for
    such a worker, and disable itself. So is the plugin of hypothesis, which takes a second to
    import, and which a user's environment does not have; and what names a CI, where pytest writes
    its summary in full.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith(NOT_PASSED_ON)}
    without = {"PYTEST_ADDOPTS": "-p no:hypothesispytest"}
    return {**own, **without, "OMP_NUM_THREADS": "1", VISIBLE: ""}
