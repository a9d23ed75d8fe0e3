"""A user's machine: a copy of the repository, an empty home, chosen commands, and no `python`."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from fixtures.devices.host import VISIBLE
from fixtures.settings import REPOSITORY
from tests.sessions.pages import command

TIMEOUT_S = 900
PASSED_ON = re.compile(r"(PIP_|UV_|SSL_|LC_|LANG$|TMPDIR$).*|.*_proxy", re.IGNORECASE)
"""Variables of this machine that say where packages come from, and in which language."""
PIP_CONFIG = (".config/pip/pip.conf", ".pip/pip.conf")
HIDDEN = re.compile(r"(python|pip|pipx|nox|uv|virtualenv)[\d.]*$")
"""What a user may not have."""
ACTIVATE = command("README.md", "bin/activate")


@dataclass(frozen=True)
class Machine:
    """What runs in `folder` finds the commands in `commands` alone, and writes to `home`."""

    folder: Path
    commands: Path
    home: Path
    before: tuple[str, ...] = ()
    """Words before every command."""

    @classmethod
    def new(cls, root: Path, name: str = "diffusers-perf", python: str = "") -> Machine:
        """Copy the repository's files as they are now; `python3` is the interpreter of `python`."""
        folder, commands, home = root / name, root / "bin", root / "home"
        for made in (folder, commands, home):
            made.mkdir(parents=True)
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        files = subprocess.run(listed, cwd=REPOSITORY, capture_output=True, text=True, check=True)
        for file in filter(None, files.stdout.split("\0")):
            if (REPOSITORY / file).is_file():
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(REPOSITORY / file, folder / file)
        for path in (*Path("/bin").iterdir(), *Path("/usr/bin").iterdir()):
            if not HIDDEN.match(path.name) and not (commands / path.name).is_symlink():
                (commands / path.name).symlink_to(path)
        interpreter = python or Path(sys.executable).resolve()
        (commands / "python3").write_text(f'#!/bin/sh\nexec "{interpreter}" "$@"\n', "utf-8")
        (commands / "python3").chmod(0o755)
        return cls(folder, commands, home)

    def take_environment(self, of: Machine, *, nox: bool = True) -> Machine:
        """Use what another machine installed to measure in, and, unless told not to, its nox."""
        (self.folder / ".nox").mkdir()
        (self.folder / ".nox/environment").symlink_to(of.folder / ".nox/environment")
        if nox:
            (self.folder / ".venv").symlink_to(of.folder / ".venv")
        return self

    @property
    def variables(self) -> dict[str, str]:
        """The environment of what runs; an index that does not answer is given up at once."""
        own = {name: value for name, value in os.environ.items() if PASSED_ON.fullmatch(name)}
        for path in PIP_CONFIG:
            if (Path.home() / path).is_file():
                own.setdefault("PIP_CONFIG_FILE", str(Path.home() / path))
        own = {"PIP_RETRIES": "0", **own, "PATH": str(self.commands), "HOME": str(self.home)}
        return {**own, VISIBLE: ""}

    def do(self, script: str, *, status: int = 0, interrupt: str = "") -> str:
        """Run lines as a user does once nox is installed; what they print."""
        return self.run(f"{ACTIVATE}\n{script}", status=status, interrupt=interrupt)

    def run(self, script: str, *, status: int = 0, interrupt: str = "") -> str:
        """Run lines that end with this status; Ctrl-C a second after a line that has `interrupt`.

        Raises:
            AssertionError: if they end with another status.
        """
        said: list[str] = []
        process = subprocess.Popen(
            [*self.before, "bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        with process:
            assert process.stdout is not None
            try:
                if interrupt:
                    for line in process.stdout:
                        said.append(line)
                        if re.search(interrupt, line):
                            break
                    time.sleep(1)
                    os.killpg(process.pid, signal.SIGINT)
                said.append(process.communicate(timeout=TIMEOUT_S)[0])
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        output = "".join(said)
        assert process.returncode == status, f"{process.returncode} of:\n{script}\n{output}"
        return output
