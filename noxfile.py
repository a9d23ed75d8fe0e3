"""Sessions: tests, lint, typing (default); perf, refresh, report, compare, bisect, power (named).

Every session installs what it needs into an environment of its own, with the versions of
`constraints.txt`. What stands behind `--` goes to the tool the session runs.
"""

from __future__ import annotations

from pathlib import Path

import nox

nox.needs_version = ">=2024.10.9"
nox.options.sessions = ["tests", "lint", "typing"]
nox.options.reuse_venv = "yes"

PROJECT = nox.project.load_toml("pyproject.toml")


def install(session: nox.Session, *groups: str) -> None:
    """Install the project's dependencies and these groups, at the constrained versions."""
    requirements = [
        *PROJECT["project"]["dependencies"],
        *nox.project.dependency_groups(PROJECT, *groups),
    ]
    session.install(*requirements, "-c", "constraints.txt")


@nox.session
def tests(session: nox.Session) -> None:
    """The bench's own tests; no GPU, no network."""
    install(session, "tests")
    session.run(
        "pytest", "tests", "-n2", "--dist=loadfile", "--benchmark-disable", *session.posargs
    )


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff: rules and format; workflows against their published schema; the Dockerfile."""
    session.install(*nox.project.dependency_groups(PROJECT, "lint"), "-c", "constraints.txt")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    workflows = sorted(str(path) for path in Path(".github/workflows").glob("*.yml"))
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *workflows)
    session.run("hadolint", ".github/runner/Dockerfile")


@nox.session
def typing(session: nox.Session) -> None:
    """Mypy, strict."""
    install(session, "typing")
    session.run("mypy")


@nox.session(default=False)
def perf(session: nox.Session) -> None:
    """The main job: measure and judge every technique this machine can run."""
    install(session, "perf")
    session.run("pytest", "perf_tests", *session.posargs)


@nox.session(default=False)
def refresh(session: nox.Session) -> None:
    """Record new baselines: nox -s refresh -- -k "[storybook-fp16]" --perf-reason "WHY"."""
    install(session, "perf")
    session.run("pytest", "perf_tests", "--perf-update-baselines", *session.posargs)


@nox.session(default=False)
def report(session: nox.Session) -> None:
    """Rebuild a report without measuring again: nox -s report -- results.json --output DIR."""
    install(session)
    session.run("python", "-m", "fixtures.report", *session.posargs)


@nox.session(default=False)
def compare(session: nox.Session) -> None:
    """Two sets of packages: nox -s compare -- --base diffusers==0.36.0 --head diffusers==0.42.1."""
    install(session, "compare")
    session.run("python", "-m", "fixtures.compare", *(session.posargs or ["--help"]))


@nox.session(default=False)
def bisect(session: nox.Session) -> None:
    """The release or commit that did it: nox -s bisect -- --package diffusers --good ... -k ..."""
    install(session, "compare")
    session.run("python", "-m", "fixtures.bisect", *(session.posargs or ["--help"]))


@nox.session(default=False)
def power(session: nox.Session) -> None:
    """How often latency verdicts err here: nox -s power -- collect FILE, ... -- replay FILE."""
    install(session)
    session.run("python", "-m", "fixtures.power", *(session.posargs or ["--help"]))
