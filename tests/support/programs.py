"""Programs of a few lines, each in a process that has done nothing else."""

from __future__ import annotations

import os
import subprocess
import sys

from fixtures.settings import REPOSITORY


def printed(program: str, *arguments: str, **environment: str) -> str:
    """What it prints; it must not fail."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, *arguments],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return done.stdout
