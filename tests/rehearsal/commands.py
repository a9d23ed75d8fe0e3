"""The user's commands on the rehearsal's machine, each a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from fixtures.settings import REPOSITORY
from tests.rehearsal.machine import FOLDER, User, users
from tests.support.running import own_environment

SITE = Path(__file__).with_name("site")
TIMEOUT_S = 1800
AGAIN_S = 20
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
        with self._started(arguments, environment) as process:
            said, _ = process.communicate(timeout=TIMEOUT_S)
        return Done(process.returncode, said, users(self.folder))

    def interrupted(self, after: str, *arguments: str, **environment: str) -> Done:
        """As `python`, with an interrupt as soon as it prints a line with these words."""
        lines = []
        with self._started(arguments, environment) as process:
            for line in process.stdout or ():
                lines.append(line)
                if after in line:
                    Thread(target=_interrupt, args=(process, lines), daemon=True).start()
            process.wait(TIMEOUT_S)
        return Done(process.returncode, "".join(lines), users(self.folder))

    def _started(
        self, arguments: tuple[str, ...], environment: dict[str, str]
    ) -> subprocess.Popen[str]:
        own = own_environment()
        del own["CUDA_VISIBLE_DEVICES"]  # Both cards may be used.
        for path in self.folder.glob("*.user"):
            path.unlink()
        return subprocess.Popen(
            [sys.executable, "-u", *arguments],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
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


def _interrupt(process: subprocess.Popen[str], lines: list[str]) -> None:
    """Interrupt it until it says so: Python drops what is raised within a weak reference's call."""
    while process.poll() is None and not any("interrupted" in line for line in lines):
        process.send_signal(signal.SIGINT)
        time.sleep(AGAIN_S)
