"""A package that uv builds and installs without a network: its build backend lies in its folder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from fixtures.commands.checkout import git
from fixtures.commands.compare.environments import PROJECT
from fixtures.commands.compare.installer import run

PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "tiny"
version = "{version}"
"""
BACKEND = """
import pathlib, re, zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    version = re.search('version = "(.*)"', pathlib.Path("pyproject.toml").read_text())[1]
    about = {
        "METADATA": f"Metadata-Version: 2.1\\nName: tiny\\nVersion: {version}\\n",
        "WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        "RECORD": "",
    }
    name = f"tiny-{version}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder, name), "w") as wheel:
        wheel.write("tiny.py")
        for file, text in about.items():
            wheel.writestr(f"tiny-{version}.dist-info/{file}", text)
    return name
"""


class TinyPackage:
    """A repository of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        git(folder, "init", "--quiet", "--initial-branch", "main")
        (folder / "backend.py").write_text(BACKEND)

    def commit(self, said: str, version: str = "1.0") -> str:
        """Commit the module that says this; the commit's name."""
        (self.folder / "pyproject.toml").write_text(PYPROJECT.format(version=version))
        (self.folder / "tiny.py").write_text(f"SAID = {said!r}\n")
        git(self.folder, "add", ".")
        who = ("-c", "user.name=T", "-c", "user.email=t@example.com")
        git(self.folder, *who, "commit", "--quiet", "--message", said)
        return git(self.folder, "rev-parse", "HEAD").strip()

    def wheel(self, said: str, version: str, into: Path) -> Path:
        """A wheel of it in this folder."""
        self.commit(said, version)
        into.mkdir(exist_ok=True)
        program = f"import backend; backend.build_wheel({str(into)!r})"
        subprocess.run([sys.executable, "-c", program], cwd=self.folder, check=True)
        return into / f"tiny-{version}-py3-none-any.whl"


class OfflineUv:
    """Runs uv itself, without an index and without the suite's own requirements."""

    def __init__(self, empty: Path, *options: str) -> None:
        empty.write_text("")
        self._empty, self._options = empty, options

    def __call__(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        words = [str(self._empty) if word == str(PROJECT) else word for word in command]
        if "config" in words:
            return subprocess.CompletedProcess(command, 0, "", "")
        if words[1] == "pip":
            words += ["--offline", "--no-index", *self._options]
        return run(words)
