"""What both actions do, step by step: `prepare SESSION`, `environment`, then `perf` or `compare`.

What a workflow passes arrives in variables and leaves as words of a list, so that no shell reads
it. The standard library alone: this runs before anything is installed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import re
import shlex
import subprocess
import sys
import venv
from collections.abc import Callable, Mapping
from pathlib import Path

SUITE = Path(__file__).resolve().parents[2]
REQUIREMENTS = ("pyproject.toml", "constraints.txt", "noxfile.py")
CPU_WHEELS = {
    "PIP_EXTRA_INDEX_URL": "https://download.pytorch.org/whl/cpu",
    "UV_TORCH_BACKEND": "cpu",
}
"""Without CUDA's libraries: for pip, and for the environments that uv makes."""


def caches() -> Path:
    """Where the environments of nox and uv's cache are, which has those of comparisons."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "diffusers-perf")


def on_cuda() -> bool:
    """Whether packages have to be those for a GPU."""
    return os.environ["DEVICE"] == "cuda"


def variables() -> dict[str, str]:
    """For nox and pip; what a runner has set comes before what is set here."""
    own = {"NOX_ENVDIR": str(caches() / "nox"), "UV_CACHE_DIR": str(caches() / "uv")}
    return {**own, **({} if on_cuda() else CPU_WHEELS), **os.environ}


def interpreter() -> str:
    """That which has nox: this one, or that of an environment in the job's temporary folder."""
    if importlib.util.find_spec("nox"):
        return sys.executable
    folder = Path(os.environ["RUNNER_TEMP"], "diffusers-perf")
    return str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))


def nox(*words: str) -> int:
    """Run nox on the suite's own sessions, in the suite's folder; its exit code."""
    command = (interpreter(), "-m", "nox", "-f", str(SUITE / "noxfile.py"), *words)
    return subprocess.run(command, env=variables(), check=False).returncode


def prepare(session: str) -> int:
    """Install nox, and tell the following steps what is cached, and under which key."""
    python = interpreter()
    if python != sys.executable:
        venv.create(Path(os.environ["RUNNER_TEMP"], "diffusers-perf"), with_pip=True)
        subprocess.run((python, "-m", "pip", "install", "--quiet", "nox"), check=True)
    content = b"".join((SUITE / name).read_bytes() for name in REQUIREMENTS)
    system = (platform.system(), platform.machine(), platform.python_version())
    wheels, digest = "cuda" if on_cuda() else "cpu", hashlib.sha256(content).hexdigest()[:16]
    key = "-".join(("diffusers-perf", session, *system, wheels, digest))
    with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as file:
        file.write(f"folder={caches()}\nkey={key}\n")
    return 0


def environment() -> int:
    """Make the environment that is measured."""
    return nox("-s", "environment")


def report() -> Path:
    """The report's folder, in which a comparison of a pull request leaves its number.

    The workflow that comments reads it there.
    """
    folder = Path(os.environ["GITHUB_WORKSPACE"], os.environ["REPORT"])
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        sys.exit(f"report: {folder} cannot be made ({error.strerror}); give another folder")
    if found := re.fullmatch(r"refs/pull/(\d+)/merge", os.environ.get("GITHUB_REF", "")):
        (folder / "pull-request").write_text(f"{found[1]}\n", encoding="utf-8")
    return folder


def words_of(variable: str) -> list[str]:
    """What a workflow passes, as a shell would split it."""
    try:
        return shlex.split(os.environ[variable])
    except ValueError as error:
        sys.exit(f"{variable.lower()}: {os.environ[variable]!r} has {error}; close the quotation")


def shared() -> list[str]:
    """The options that both sessions take."""
    options = ["--perf-device", os.environ["DEVICE"]]
    for name in os.environ["WORKLOAD"].split():
        options += ["--perf-workload", name]
    if os.environ["SELECT"]:
        options += ["-k", os.environ["SELECT"]]
    return [*options, *words_of("ARGUMENTS")]


def perf() -> int:
    """Install what the workflow measures in place of the constrained versions; then measure."""
    if words := words_of("INSTALL"):
        environments = Path(variables()["NOX_ENVDIR"])
        python = (environments / ".cache" / "environment-python").read_text(encoding="utf-8")
        subprocess.run(
            (python, "-m", "pip", "install", "--upgrade", *words), env=variables(), check=True
        )
    folder = report()
    files = ("--perf-report", str(folder), "--junitxml", str(folder / "junit.xml"))
    return nox("-s", "perf", "--", *files, *shared())


def compare() -> int:
    """Compare two sides; a word that names a folder here is meant as that folder."""
    sides: list[str] = []
    for name in ("base", "head"):
        words = words_of(name.upper())
        paths = (os.path.join(os.environ["GITHUB_WORKSPACE"], word) for word in words)  # noqa: PTH118
        # Not Path.exists, which raises where a word is too long for a name.
        both = zip(words, paths, strict=True)
        sides += [f"--{name}", *(path if os.path.exists(path) else word for word, path in both)]  # noqa: PTH110
    strict = os.environ["STRICT"]
    if strict not in ("true", "false"):
        sys.exit(f"strict: {strict!r} is neither true nor false; give one of them")
    warn = ["--warn"] if strict == "false" else []
    return nox("-s", "compare", "--", "--perf-report", str(report()), *warn, *sides, *shared())


STEPS: Mapping[str, Callable[..., int]] = {
    step.__name__: step for step in (prepare, environment, perf, compare)
}

if __name__ == "__main__":
    try:
        sys.exit(STEPS[sys.argv[1]](*sys.argv[2:]))
    except subprocess.CalledProcessError as error:
        sys.exit(f"{shlex.join(map(str, error.cmd))} failed with {error.returncode}")
