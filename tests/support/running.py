"""Run the suite as a user would, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

from fixtures.devices.host import VISIBLE
from fixtures.settings import REPOSITORY

TIMEOUT_S = 600


def run_suite(
    *arguments: str, tests: str = "perf_tests", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Call pytest on these tests, with these arguments and environment variables."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", tests, *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env={**own_environment(), **environment},
        check=False,
    )


def own_environment() -> dict[str, str]:
    """This process' environment, with one thread and without an accelerator.

    What pytest-xdist says to its own workers is left out: pytest-benchmark would take the suite for
    such a worker, and disable itself. So is the plugin of hypothesis, which takes a second to
    import, and which a user's environment does not have.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    without = {"PYTEST_ADDOPTS": "-p no:hypothesispytest"}
    return {**own, **without, "OMP_NUM_THREADS": "1", VISIBLE: ""}
