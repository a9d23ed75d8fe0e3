"""Sessions: tests, lint, typing (default); those that measure, perf and refresh first; others.

Everything that measures runs in one environment, which the session `environment` makes: what is
installed there is what is measured, and what a refresh accepts. It is installed once and then left
alone, so a package that you put there stays, until the project's requirements change:

    .nox/environment/bin/python -m pip install -e ../diffusers

The other sessions have environments of their own. All of them take the versions in
`constraints.txt`, and pass what follows `--` to the tool they run.
"""

from __future__ import annotations

import hashlib
import os
import signal
from functools import partial
from pathlib import Path

import nox

nox.needs_version = ">=2025.5.1"
nox.options.sessions = ["tests", "lint", "typing"]
nox.options.reuse_venv = "yes"
if "NOX_ENVDIR" in os.environ:  # nox itself knows the option --envdir alone
    nox.options.envdir = os.environ["NOX_ENVDIR"]

PROJECT = nox.project.load_toml("pyproject.toml")
CONSTRAINTS = Path("constraints.txt")
INSTALLED = "installed.sha256"
"""A file in the shared environment: the digest of the requirements that were installed there."""
SHARED_PYTHON = "environment-python"
"""A file in nox's cache folder: where the shared environment's interpreter is."""
WRITE = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text(sys.argv[2])"


def group(*names: str) -> tuple[str, ...]:
    """The requirements of these dependency groups alone."""
    return nox.project.dependency_groups(PROJECT, *names)


def with_groups(*names: str) -> tuple[str, ...]:
    """The project's own requirements and those of these dependency groups."""
    return (*PROJECT["project"]["dependencies"], *group(*names))


def install(session: nox.Session, *requirements: str) -> None:
    """Install these at the constrained versions."""
    session.install(*requirements, "-c", str(CONSTRAINTS))


@nox.session
def tests(session: nox.Session) -> None:
    """The suite's own tests, no GPU, no network; the long ones with -- -m long."""
    install(session, *with_groups("tests"))
    chosen = any(word.startswith("-m") for word in session.posargs)
    session.run(
        *("pytest", "tests", "--ignore=tests/rehearsal", "--ignore=tests/sessions"),
        *("-n2", "--dist=loadfile"),
        *("--benchmark-disable", *(() if chosen else ("-m", "not long")), *session.posargs),
    )


@nox.session(default=False)
def libraries(session: nox.Session) -> None:
    """Tests of techniques by optional libraries; the other sessions run without them."""
    install(session, *with_groups("tests", "quantization", "optional"))
    names = ("test_half_done_quantized", "test_optional")
    tried = [f"tests/catalogue/techniques/{name}.py" for name in names]
    parallel = ("-n2", "--dist=worksteal")
    session.run("pytest", *tried, *parallel, "--benchmark-disable", *session.posargs)


@nox.session(default=False)
def walkthroughs(session: nox.Session) -> None:
    """README and docs to the letter, on machines that users have; installs packages with pip."""
    install(session, *with_groups("tests"))
    session.run("pytest", "tests/sessions", "--benchmark-disable", "-rs", *session.posargs)


@nox.session(default=False)
def rehearsal(session: nox.Session) -> None:
    """The CUDA lane by its real commands, without a GPU."""
    install(session, *with_groups("tests"))
    parallel = ("-n2", "--dist=loadfile")
    session.run("pytest", "tests/rehearsal", *parallel, "--benchmark-disable", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff: rules and format; workflows and actions by their published schemas; the Dockerfile."""
    install(session, *group("lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    schemas = {"github-workflows": "*/workflows/*.yml", "github-actions": ".github/actions/*/*.yml"}
    for schema, pattern in schemas.items():
        files = sorted(map(str, Path().glob(pattern)))
        session.run("check-jsonschema", "--builtin-schema", f"vendor.{schema}", *files)
    session.run("hadolint", ".github/runner/Dockerfile")


@nox.session
def typing(session: nox.Session) -> None:
    """Mypy, strict."""
    install(session, *with_groups("typing"))
    session.run("mypy")


@nox.session(default=False, reuse_venv=True)
def environment(session: nox.Session) -> None:
    """Where all sessions below but report measure; installed once."""
    (session.cache_dir / SHARED_PYTHON).write_text(str(Path(session.bin, "python")))
    requirements = with_groups("perf", "compare")
    text = "\n".join([*requirements, CONSTRAINTS.read_text(encoding="utf-8")])
    digest = hashlib.sha256(text.encode()).hexdigest()
    installed = session.env_dir / INSTALLED
    if installed.is_file():
        if installed.read_text() == digest:
            return
        session.warn("the project's requirements changed: this replaces what you installed by hand")
    install(session, *requirements)
    # Not by this process: nox --no-install skips the installation, so it must skip this, too.
    session.run_install("python", "-c", WRITE, str(installed), digest, log=False)


in_environment = partial(nox.session, default=False, python=False, requires=["environment"])


def measure(session: nox.Session, *arguments: str) -> None:
    """Run the shared environment's Python."""
    python = session.cache_dir / SHARED_PYTHON
    if not python.is_file():
        session.error("there is no environment to measure in; create it with: nox -s environment")

    def interrupted(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    # Otherwise nox dies of SIGTERM or a second Ctrl-C, and what it runs goes on.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupted)
    session.run(
        *(python.read_text(), *arguments),
        # nox kills half a second after Ctrl-C what has not written its report by then.
        interrupt_timeout=5,
        terminate_timeout=60,
    )


@in_environment()
def perf(session: nox.Session) -> None:
    """Measure and judge every technique that this machine can run."""
    measure(session, "-m", "pytest", "perf_tests", *session.posargs)


@in_environment()
def refresh(session: nox.Session) -> None:
    """Record new baselines: nox -s refresh -- -k "[storybook-fp16]" --perf-reason "WHY"."""
    measure(session, "-m", "pytest", "perf_tests", "--perf-update-baselines", *session.posargs)


@in_environment()
def compare(session: nox.Session) -> None:
    """Two sets of packages: nox -s compare -- --base diffusers==0.36.0 --head diffusers==0.42.1."""
    measure(session, "-m", "fixtures.commands.compare", *(session.posargs or ["--help"]))


@in_environment()
def bisect(session: nox.Session) -> None:
    """The release or commit that did it: nox -s bisect -- --package diffusers --good ... -k ..."""
    measure(session, "-m", "fixtures.commands.bisect", *(session.posargs or ["--help"]))


@in_environment()
def fit(session: nox.Session) -> None:
    """Does it fit a card, and which way comes first: nox -s fit -- flux --card rtx-4090."""
    measure(session, "-m", "fixtures.commands.fit", *(session.posargs or ["--help"]))


@nox.session(default=False)
def report(session: nox.Session) -> None:
    """Rebuild a report without measuring: nox -s report -- results.json --perf-report DIR."""
    install(session, *group("report"))
    session.run("python", "-m", "fixtures.commands.report", *(session.posargs or ["--help"]))
