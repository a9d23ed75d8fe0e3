"""A package that uv builds and installs without a network: its build backend lies in its folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.commands.bisect.__main__ import git
from fixtures.commands.compare import environments

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
        module = self.folder / "src" / "tiny" / "__init__.py"
        module.parent.mkdir(parents=True, exist_ok=True)
        module.write_text(f'__version__ = "{version}"\n')
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


def without_an_index(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let uv install what lies here, and nothing of the suite's own requirements."""
    nothing = folder / "pyproject.toml"
    nothing.write_text("[project]\nname = 'nothing'\nversion = '1'\n")
    patch.setattr(environments, "PROJECT", nothing)
    patch.setenv("UV_CACHE_DIR", str(folder / "uv"))
    for name, value in {"OFFLINE": "1", "NO_INDEX": "1", "VENV_SEED": "0"}.items():
        patch.setenv(f"UV_{name}", value)
