"""What the pages say exists does: links, anchors, paths; and every command that they show parses.

A command is parsed by the parser that would run it, in this process, and stopped there; what its
`-k` and `-m` ask for, and the workloads, techniques and cards that it names, have to exist.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import importlib.util
import io
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark.expression import Expression

from fixtures.catalogue.matrix import scenarios
from fixtures.catalogue.techniques import CATALOGUE
from fixtures.catalogue.workloads import WORKLOADS
from fixtures.catalogue.workloads.twins import twins
from fixtures.devices.simulated.profiles import PROFILES
from fixtures.settings import COMPILATION, OPTIONS, Settings, SettingsError

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
NOX = re.compile(r"nox -s ((?:[a-z]+ )*[a-z]+)(?: -- ([^`\n]+))?")
MODULE = re.compile(r"python -m ((?:fixtures|tests)[\w.]*)([^`\n]*)")
PATH = re.compile(r"`((?:fixtures|tests|perf_tests|docs|baselines|\.github|\.ci)/[^`\s]+)`")
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)")
NEW_FILE = re.compile(r"`([^`\s]+)`:\n\n```python\n\"\"\"")
"""A path whose file a page shows from its first line on."""
CITED = re.compile(r"docs/[\w-]+\.md")
PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b")
"""Such as `NAME`, for a word that the reader chooses."""
ON_A_PAGE = re.compile(r"^def (\w+)\(|^    \"([\w-]+)\",$", re.MULTILINE)
"""Techniques and workloads that a page defines."""


def text_of(page: str) -> str:
    return (REPOSITORY / page).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Session:
    """What a session of `noxfile.py` runs: a module of ours, or pytest if there is none."""

    module: str
    own_options: tuple[str, ...]
    folder: str = "perf_tests"


@cache
def sessions() -> dict[str, Session]:
    """The sessions of `noxfile.py` by name."""
    decorated = (
        (node, " ".join(map(ast.unparse, node.decorator_list)))
        for node in ast.parse(text_of("noxfile.py")).body
        if isinstance(node, ast.FunctionDef)
    )
    return {
        function.name: Session(
            next((word for word in _words(function) if word.startswith("fixtures.")), ""),
            tuple(word for word in _words(function) if word.startswith("--perf-")),
            "tests"
            if re.search(r"^tests(/|$)", "\n".join(_words(function)), re.M)
            else "perf_tests",
        )
        for function, decorators in decorated
        if "nox.session" in decorators or "in_environment" in decorators
    }


def _words(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


class ParsedError(BaseException):
    """A command got as far as its options: what they are."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__()
        self.options = options


def parsed(module: str, arguments: Sequence[str]) -> argparse.Namespace | str:
    """The options of a command by its own parser, or what that says is wrong with them."""
    parse = argparse.ArgumentParser.parse_args

    def stop(parser: Any, *given: Any, **named: Any) -> Any:
        raise ParsedError(parse(parser, *given, **named))

    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(said):
        patch.setattr(argparse.ArgumentParser, "parse_args", stop)
        try:
            runnable(module).main(list(arguments))
        except ParsedError as stopped:
            return stopped.options
        except SystemExit:
            pass
    return said.getvalue().strip().rpartition("error: ")[2]


@cache
def runnable(module: str) -> Any:
    """What `python -m` runs."""
    package = importlib.util.find_spec(module)
    if package is not None and package.submodule_search_locations:
        module = f"{module}.__main__"
    return importlib.import_module(module)


class Checker:
    """Finds what a page says and is not so, each in one phrase."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        of_twins = [twin.name for twin in twins()]
        self._scenarios = [
            *(scenario.id for scenario in scenarios(list(WORKLOADS))),
            *(f"{name}-torch_compile" for name in of_twins),
        ]
        self._tests = {
            folder: {
                name
                for path in (REPOSITORY / folder).rglob("test_*.py")
                for name in (
                    path.stem,
                    *re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.M),
                )
            }
            for folder in ("perf_tests", "tests")
        }
        self._markers = {technique.family for technique in CATALOGUE} | {"long", COMPILATION}
        workloads = {*WORKLOADS, *of_twins}
        self._names = {
            **dict.fromkeys(("perf_workload", "pipeline", "workload"), workloads),
            "perf_profile": set(PROFILES),
            "card": {*PROFILES, "16GiB"},
            "technique": {technique.id for technique in CATALOGUE},
            "scenario": {*self._scenarios},
        }

    def complaints(self, text: str, page: Path) -> Iterator[str]:
        for target, anchor in LINK.findall(text):
            path = page.parent / target if target else page
            if not path.exists():
                yield f"link to {target}"
            elif anchor and anchor not in anchors(path):
                yield f"link to {target}#{anchor}"
        for name in set(PATH.findall(text)) - set(NEW_FILE.findall(text)):
            path_name = name.partition("::")[0].rstrip("/")
            if not re.search(r"[<>]|[A-Z]{3}", path_name) and not list(REPOSITORY.glob(path_name)):
                yield f"path {name}"
        named = {word for pair in ON_A_PAGE.findall(text) for word in pair}
        for names, given in NOX.findall(text):
            for session in names.split():
                if session not in sessions():
                    yield f"session {session}"
                elif given:
                    for said in self._of_command(sessions()[session], given, named):
                        yield f"{session}: {said}"
        for module, given in MODULE.findall(text):
            try:
                runnable(module)
            except ImportError:
                yield f"module {module}"
                continue
            if module.startswith("fixtures") and given.strip():
                for said in self._of_command(Session(module, ()), given, named):
                    yield f"{module}: {said}"
        everywhere = {option.name for option in OPTIONS}
        for option in sorted(set(re.findall(r"--perf-[a-z-]+", text)) - everywhere):
            yield f"option {option}"

    def _of_command(self, session: Session, given: str, named: set[str]) -> Iterator[str]:
        """What is wrong with the words after a command; `named` is what the page defines."""
        given = re.sub(r"\$\{\{.*?\}\}", "1", given)
        arguments = shlex.split(given, comments=True)
        if "..." in arguments or "OPTIONS" in arguments:
            return
        if session.module:
            options = parsed(session.module, arguments)
        else:
            options = self._of_pytest([*session.own_options, *arguments])
        if isinstance(options, str):
            yield options
            return
        keyword = getattr(options, "keyword", "") or ""
        if not self._selects(keyword, named, session.folder):
            yield f"-k {keyword} selects nothing"
        marks = getattr(options, "markexpr", "") or ""
        for mark in set(re.findall(r"\w+", marks)) - {"and", "or", "not"} - self._markers:
            yield f"-m {mark}"
        for destination, names in self._names.items():
            value = getattr(options, destination, None) or []
            for name in value if isinstance(value, list) else [str(value)]:
                is_free = "/" in name or PLACEHOLDER.search(name) or _of_page(name, named)
                if not is_free and name not in names:
                    yield f"{destination} {name}"

    def _of_pytest(self, arguments: list[str]) -> argparse.Namespace | str:
        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said):
                options = self._config._parser.parse(arguments)
            if not PLACEHOLDER.search(" ".join(arguments)):
                Settings.parse(lambda destination: getattr(options, destination))
        except (pytest.UsageError, SettingsError, SystemExit) as error:
            return str(error).rpartition("error: ")[2].partition("\n")[0]
        return options

    def _selects(self, keyword: str, named: set[str], folder: str) -> bool:
        if not keyword or PLACEHOLDER.search(keyword) or _of_page(keyword, named):
            return True
        matches = [f"test_latency[{name}]" for name in self._scenarios] + [*self._tests[folder]]
        expression = Expression.compile(keyword)

        def is_selected(name: str) -> bool:
            return expression.evaluate(lambda word, /, **_: word.lower() in name.lower())

        return any(map(is_selected, matches))


def _of_page(name: str, named: set[str]) -> bool:
    """Whether the page defines it, or what it is a scenario of."""
    return any(word and word in name for word in named)


@pytest.fixture(scope="module")
def checker(pytestconfig: pytest.Config) -> Checker:
    return Checker(pytestconfig)


@pytest.mark.parametrize("page", [page for page in PAGES if page != HISTORY])
def test_what_a_page_names_exists_and_its_commands_parse(page: str, checker: Checker) -> None:
    missing = list(checker.complaints(text_of(page), REPOSITORY / page))
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[a](docs/none.md)", "link to docs/none.md"),
        ("[a](docs/measuring.md#none)", "link to docs/measuring.md#none"),
        ("[a](#none)", "link to #none"),
        ("`fixtures/none.py`", "path fixtures/none.py"),
        ("`nox -s none`", "session none"),
        ("`python -m fixtures.none`", "module fixtures.none"),
        ("`python -m fixtures.records`", "module fixtures.records"),
        ("`nox -s perf -- -k none_such`", "perf: -k none_such selects nothing"),
        ("`nox -s perf -- -k test_docs`", "perf: -k test_docs selects nothing"),
        ("`nox -s perf -- -m none`", "perf: -m none"),
        ("`nox -s perf -- --perf-workload none`", "perf: perf_workload none"),
        ("`nox -s fit -- none --card h100`", "fit: pipeline none"),
        ("`nox -s fit -- flux --card none`", "fit: card none"),
        (
            "`nox -s compare -- --base a --head b -k sd15-none`",
            "compare: -k sd15-none selects nothing",
        ),
        ("`--perf-none`", "option --perf-none"),
        # What a parser refuses, in its words.
        ("`nox -s perf -- --perf-none`", "perf: unrecognized arguments: --perf-none"),
        ("`nox -s perf -- --perf-shard 3/2`", "perf: --perf-shard "),
        ("`nox -s bisect -- --metric none`", "bisect: argument --metric: invalid choice: 'none'"),
        ("`python -m fixtures.commands.calibrate --none`", "fixtures.commands.calibrate: "),
    ],
)
def test_the_checker_sees_what_is_not_so(text: str, complaint: str, checker: Checker) -> None:
    assert next(checker.complaints(text, REPOSITORY / "README.md")).startswith(complaint)


def test_pages_that_code_cites_exist() -> None:
    cited = {
        page
        for folder in ("fixtures", "perf_tests")
        for path in (REPOSITORY / folder).rglob("*.py")
        for page in CITED.findall(path.read_text(encoding="utf-8"))
    }
    assert len(cited) > 5
    assert {page for page in cited if not (REPOSITORY / page).exists()} == set()


def test_the_readme_is_short_and_leads_to_every_page_of_docs() -> None:
    readme = text_of("README.md")
    assert len(readme.splitlines()) <= README_LINES
    for page in PAGES:
        if page.startswith("docs/"):
            assert f"({page})" in readme
