"""What the README and docs/ say exists: links, paths, sessions, modules, options."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from fixtures.settings import OPTIONS

REPOSITORY = Path(__file__).parent.parent
PAGES = sorted(
    path.relative_to(REPOSITORY).as_posix()
    for path in (
        *REPOSITORY.glob("*.md"),
        *REPOSITORY.glob("docs/*.md"),
        *REPOSITORY.glob("fixtures/**/*.md"),
    )
)
HISTORY = "CHANGELOG.md"
"""It may name what is no longer there."""
README_LINES = 150
COMMANDS = {
    "survey": "fixtures.__main__",
    "fit": "fixtures.commands.fit.__main__",
    "report": "fixtures.commands.report",
    "compare": "fixtures.commands.compare.__main__",
    "bisect": "fixtures.commands.bisect.__main__",
    "replay": "fixtures.commands.replay.__main__",
    "power": "fixtures.studies.power.__main__",
}
PYTEST_OPTIONS = {"--junitxml", "--collect-only"}
CHOICES = {"--metric", "--change"}
"""Options whose values their help lists."""
NOT_OUR_WORDS = re.compile(
    r"\b(yardstick|opponent|census|gravity|likeness|relocation|unjudged|percents|in turns)\b", re.I
)
SESSION = re.compile(r"nox -s ((?:[a-z]+ )*[a-z]+)")
CALL = re.compile(r"nox -s ([a-z]+) -- ([^`\n]+)")
MODULE = re.compile(r"python -m ((?:fixtures|tests)[\w.]*)")
PATH = re.compile(r"`((?:fixtures|tests|perf_tests|docs|baselines|\.github|\.ci)/[^`\s]+)`")
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)")


def text_of(page: str) -> str:
    return (REPOSITORY / page).read_text(encoding="utf-8")


@cache
def sessions() -> set[str]:
    listed = subprocess.run(
        [sys.executable, "-m", "nox", "--list"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(re.findall(r"^[*-] (\w+)", listed.stdout, re.MULTILINE))


@cache
def help_of(session: str, *subcommand: str) -> str:
    """What a session's command says of itself."""
    main = importlib.import_module(COMMANDS[session]).main
    said = io.StringIO()
    with contextlib.redirect_stdout(said), pytest.raises(SystemExit):
        main([*subcommand, "--help"])
    return said.getvalue()


def options_of(session: str, *subcommand: str) -> set[str]:
    """The options that a session's command takes after `--`."""
    if session not in COMMANDS:
        return {option.name for option in OPTIONS} | PYTEST_OPTIONS
    return set(re.findall(r"--[a-z][a-z-]*", help_of(session, *subcommand)))


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


def complaints(text: str, folder: Path) -> Iterator[str]:
    """Everything in a page that is not there."""
    for target, anchor in LINK.findall(text):
        path = folder / target if target else None
        if path is not None and not path.exists():
            yield f"link to {target}"
        elif anchor and path is not None and anchor not in anchors(path):
            yield f"link to {target}#{anchor}"
    for name in PATH.findall(text):
        path_name = name.partition("::")[0].rstrip("/")
        if not re.search(r"[<>]|[A-Z]{3}", path_name) and not list(REPOSITORY.glob(path_name)):
            yield f"path {name}"
    for names in SESSION.findall(text):
        yield from (f"session {name}" for name in names.split() if name not in sessions())
    for module in MODULE.findall(text):
        found = importlib.util.find_spec(module)
        if found is None or (
            found.submodule_search_locations
            and importlib.util.find_spec(f"{module}.__main__") is None
        ):
            yield f"module {module}"
    for session, line in CALL.findall(text):
        words = shlex.split(line, comments=True)
        subcommand = words[:1] if session == "power" else []
        known = options_of(session, *subcommand)
        for word, following in zip(words, [*words[1:], ""], strict=True):
            if word.startswith("--") and word.partition("=")[0] not in known:
                yield f"option {word} of {session}"
            if word in CHOICES and not re.search(rf"\b{following}\b", help_of(session)):
                yield f"{word} {following} of {session}"
    everywhere = {option.name for option in OPTIONS}
    everywhere |= {name for session in ("survey", "report") for name in options_of(session)}
    for option in sorted(set(re.findall(r"--perf-[a-z-]+", text)) - everywhere):
        yield f"option {option}"


@pytest.mark.parametrize("page", [page for page in PAGES if page != HISTORY])
def test_what_a_page_names_exists(page: str) -> None:
    missing = list(complaints(text_of(page), (REPOSITORY / page).parent))
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_uses_the_field_s_words(page: str) -> None:
    assert NOT_OUR_WORDS.findall(text_of(page)) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[a](docs/none.md)", "link to docs/none.md"),
        ("[a](docs/measuring.md#none)", "link to docs/measuring.md#none"),
        ("`fixtures/none.py`", "path fixtures/none.py"),
        ("`nox -s none`", "session none"),
        ("`python -m fixtures.none`", "module fixtures.none"),
        ("`python -m fixtures.records`", "module fixtures.records"),
        ("`nox -s perf -- --perf-none`", "option --perf-none of perf"),
        ("`nox -s survey -- --none 3`", "option --none of survey"),
        ("`nox -s bisect -- --metric none`", "--metric none of bisect"),
        ("`--perf-none`", "option --perf-none"),
    ],
)
def test_the_checker_sees_what_is_not_there(text: str, complaint: str) -> None:
    assert complaint in list(complaints(text, REPOSITORY))


def test_the_readme_is_short_and_leads_to_every_page_of_docs() -> None:
    readme = text_of("README.md")
    assert len(readme.splitlines()) <= README_LINES
    for page in PAGES:
        if page.startswith("docs/"):
            assert f"({page})" in readme
