"""The user's commands on the rehearsal's machine, each a process of its own."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from fixtures.settings import REPOSITORY
from tests.rehearsal.machine import FOLDER, User, users
from tests.support.running import own_environment

SITE = Path(__file__).with_name("site")
TIMEOUT_S = 1800
WORKLOAD = ("--perf-workload", "storybook")


@dataclass(frozen=True)
class Done:
    """What a command left: its exit code, what it said, and the processes that used a card."""

    code: int
    said: str
    users: list[User]


class Machine:
    """Two cards, and a folder for everything that its commands write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def baselines(self) -> Path:
        """Where the suite keeps its baselines."""
        return self.folder / "baselines"

    def pytest(self, *arguments: str, **environment: str) -> Done:
        """The suite."""
        words = ("-m", "pytest", "perf_tests", *WORKLOAD, f"--perf-baselines={self.baselines}")
        return self.python(*words, *arguments, **environment)

    def python(self, *arguments: str, **environment: str) -> Done:
        """Python with these arguments; it ends by itself."""
        own = own_environment()
        del own["CUDA_VISIBLE_DEVICES"]  # Both cards may be used.
        for path in self.folder.glob("*.user"):
            path.unlink()
        done = subprocess.run(
            [sys.executable, "-u", *arguments],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
            env={
                **own,
                "PYTHONPATH": str(SITE),
                # Two processes at a time, whose threads would wait for each other.
                "OMP_NUM_THREADS": "1",
                "XDG_CACHE_HOME": str(self.folder / "cache"),
                FOLDER: str(self.folder),
                **environment,
            },
        )
        return Done(done.returncode, done.stdout, users(self.folder))
