"""Run the suite as a user would, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
TIMEOUT_S = 600


def run_suite(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Call `pytest perf_tests` with these arguments."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "perf_tests", *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env={**own_environment(), **environment},
        check=False,
    )


def own_environment() -> dict[str, str]:
    """This process' environment, without what pytest-xdist says to its own workers.

    pytest-benchmark would take the suite for such a worker, and disable itself.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return {**own, "OMP_NUM_THREADS": "1"}
