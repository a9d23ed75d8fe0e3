"""The layers of `fixtures/__init__.py`, read from there and held against the imports."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import fixtures

REPOSITORY = Path(__file__).parent.parent
PYTEST = frozenset({"pytest", "_pytest", "pytest_benchmark"})
BUDGET = {"fixtures": 25_851, "tests": 28_217, "words": 19_495}
"""Lines of Python in a folder, and words of README, CONTRIBUTING and docs; it only ever falls."""
WITHOUT_TORCH = ("records", "settings", "metrics", "report")
RENDERED = ("records", "metrics", "report")
"""The rooms that `report` may import."""
HEAVY = frozenset({"torch", "diffusers", "transformers", "accelerate", "xformers"})
ROOTS = (
    "conftest",
    *(f"fixtures.suite.{name}" for name in ("plugin", "known_issues", "judging", "refreshing")),
    "fixtures.catalogue.techniques.",  # imported by name, in the order of the list
    "perf_tests.",
)
"""What collection imports by itself; a name that ends with a dot stands for all below it."""


@dataclass(frozen=True)
class Import:
    """One imported name; `lazy` inside a function, `typing` for the type checker alone."""

    name: str
    line: int
    lazy: bool
    typing: bool

    @property
    def package(self) -> str:
        return self.name.partition(".")[0]


@cache
def layers() -> dict[str, int]:
    """Module or package to layer, from the row of the docstring."""
    (row,) = (text for text in (fixtures.__doc__ or "").split("\n\n") if " < " in text)
    return {
        name: number
        for number, names in enumerate(row.partition(":")[2].split("<"))
        for name in re.findall(r"`([^`]+)`", names)
    }


def layer_of(module: str) -> int | None:
    """The layer of a module by its dotted name; None where it has none."""
    package, _, rest = module.partition(".")
    return layers().get(rest.partition(".")[0] if package == "fixtures" else package)


@cache
def modules() -> dict[str, str]:
    """Dotted name to source of everything that has a layer."""
    paths = [REPOSITORY / "conftest.py"]
    for folder in ("fixtures", "perf_tests"):
        paths += sorted((REPOSITORY / folder).rglob("*.py"))
    return {
        ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(
            ".__init__"
        ): path.read_text(encoding="utf-8")
        for path in paths
    }


class _Imports(ast.NodeVisitor):
    """Collects the imports of a module."""

    def __init__(self) -> None:
        self.imports: list[Import] = []
        self._functions = 0
        self._typing = False

    def _add(self, name: str, line: int) -> None:
        self.imports.append(Import(name, line, self._functions > 0, self._typing))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(alias.name, node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        assert node.level == 0, f"line {node.lineno}: relative imports hide the layer"
        for alias in node.names:
            self._add(f"{node.module}.{alias.name}", node.lineno)

    def _visit_function(self, node: ast.AST) -> None:
        self._functions += 1
        self.generic_visit(node)
        self._functions -= 1

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _visit_function  # noqa: N815

    def visit_If(self, node: ast.If) -> None:
        before = self._typing
        self._typing = before or "TYPE_CHECKING" in ast.unparse(node.test)
        for child in node.body:
            self.visit(child)
        self._typing = before
        for child in node.orelse:
            self.visit(child)


@cache
def imports(source: str) -> list[Import]:
    """Every import of a module, wherever it stands."""
    visitor = _Imports()
    visitor.visit(ast.parse(source))
    return visitor.imports


def _own(name: str, known: Mapping[str, str]) -> list[str]:
    """The modules of this repository that an import runs: packages first, then the module."""
    parts = name.split(".")
    prefixes = [".".join(parts[: count + 1]) for count in range(len(parts))]
    return [prefix for prefix in prefixes if prefix in known]


def collected(known: Mapping[str, str]) -> set[str]:
    """Every module that collection imports, through module-level imports."""
    waiting = [name for name in known if any(_is_root(name, root) for root in ROOTS)]
    seen: set[str] = set()
    while waiting:
        module = waiting.pop()
        if module in seen:
            continue
        seen.add(module)
        waiting += _own(module, known)
        for imported in imports(known[module]):
            if not (imported.lazy or imported.typing):
                waiting += _own(imported.name, known)
    return seen


def _is_root(name: str, root: str) -> bool:
    return name.startswith(root) if root.endswith(".") else name == root


def violations(known: Mapping[str, str]) -> list[str]:
    """Everything that breaks the layers, a line each."""
    broken = []
    at_collection = collected(known)
    for module, source in known.items():
        if module == "fixtures":
            continue
        layer = layer_of(module)
        if layer is None:
            broken.append(f"{module} is in no layer")
            continue
        for used in imports(source):
            where = f"{module}:{used.line} (layer {layer}) imports {used.name}"
            own = _own(used.name, known)
            target = layer_of(own[-1]) if own and own[-1] != "fixtures" else None
            if target is not None and target > layer:
                broken.append(f"{where} from layer {target} above")
            if _room(module) == "report" and target is not None:
                renders = _room(own[-1]) in RENDERED
                broken += [] if renders else [f"{where}: report renders records and metrics alone"]
            if used.package in PYTEST and layer < layers()["suite"]:
                broken.append(f"{where}: pytest stays in layer {layers()['suite']} and above")
            if used.package in HEAVY and _room(module) in WITHOUT_TORCH:
                broken.append(f"{where}: {_room(module)} knows no torch")
            if used.package in HEAVY - {"torch"} and _room(module) == "devices" and not used.lazy:
                broken.append(f"{where}: devices know torch alone")
            if used.package in HEAVY and not (used.lazy or used.typing) and module in at_collection:
                broken.append(f"{where} while tests are collected")
    return broken


def _room(module: str) -> str:
    """The name by which a module's layer is listed."""
    package, _, rest = module.partition(".")
    return rest.partition(".")[0] if package == "fixtures" else package


def test_imports_only_go_down_and_every_module_has_a_layer() -> None:
    assert violations(modules()) == []


def test_every_name_in_a_layer_exists() -> None:
    known = modules()
    missing = [
        name
        for name in layers()
        if name not in known
        and f"fixtures.{name}" not in known
        and not (REPOSITORY / name).is_dir()
    ]
    assert missing == []
    assert sorted(set(layers().values())) == list(range(9))


@pytest.mark.parametrize(
    ("module", "source", "complaint"),
    [
        ("fixtures.records.counts", "from fixtures import suite", "from layer 7 above"),
        (
            "fixtures.records.counts",
            "def f():\n    from fixtures.devices.host import commit",
            "2 above",
        ),
        ("fixtures.metrics.case", "def f():\n    import torch", "metrics knows no torch"),
        ("fixtures.settings", "def f():\n    import torch", "settings knows no torch"),
        (
            "fixtures.report.page",
            "from fixtures.worker.rounds import Plan",
            "report renders records and metrics alone",
        ),
        ("fixtures.metrics.statistics", "import pytest", "pytest stays in layer 7"),
        ("fixtures.worker.rounds", "from pytest import fixture", "pytest stays in layer 7"),
        ("fixtures.devices.host", "import torch", "while tests are collected"),
        ("fixtures.catalogue.techniques.attention", "import torch.nn", "while tests are collected"),
        (
            "fixtures.catalogue.techniques.attention",
            "try:\n    from diffusers import DiffusionPipeline\nexcept ImportError:\n    pass",
            "while tests are collected",
        ),
        ("fixtures.devices.host", "import diffusers", "devices know torch alone"),
        ("fixtures.helpers", "", "is in no layer"),
        (
            "fixtures.worker.rounds",
            "from fixtures.devices.cpu import CpuDevice",
            "fixtures.devices.cpu:",
        ),
    ],
)
def test_the_checker_sees_a_violation(module: str, source: str, complaint: str) -> None:
    assert any(complaint in line for line in violations({**modules(), module: source}))


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    import torch",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch",
        "from fixtures.metrics.latency_verdicts import LATENCY",
    ],
)
def test_the_checker_lets_lazy_and_typing_imports_pass(source: str) -> None:
    assert violations({**modules(), "fixtures.catalogue.techniques.attention": source}) == []


def run(tmp_path: Path, *options: str) -> str:
    """What a run of the suite prints, and which of `HEAVY` its process has imported."""
    plugin = tmp_path / "name_imported_modules.py"
    plugin.write_text(
        "import sys\n"
        "def pytest_unconfigure(config):\n"
        f"    heavy = sorted({set(HEAVY)!r} & set(sys.modules))\n"
        "    print('imported:', ','.join(heavy) or 'nothing')\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "perf_tests", "-q", "-p", "no:cacheprovider"),
            *("-p", "name_imported_modules"),
            *options,
        ],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == pytest.ExitCode.OK, done.stdout + done.stderr
    return done.stdout


def test_collecting_the_suite_imports_no_torch(tmp_path: Path) -> None:
    said = run(tmp_path, "--collect-only")
    assert "imported: nothing" in said
    assert "[storybook-fp32]" in said


def test_what_judges_imports_no_torch(tmp_path: Path) -> None:
    everything = ("--perf-device", "cpu", "-k", "[storybook-fp32] and not test_latency")
    said = run(tmp_path, *everything)
    assert "imported: nothing" in said
    assert "1 judged: 1 passed" in said


def over_budget(root: Path, budget: Mapping[str, int]) -> list[str]:
    """What is larger below `root` than its budget allows, a line each."""
    pages = [root / "README.md", root / "CONTRIBUTING.md", *(root / "docs").glob("*.md")]
    sizes = {
        name: sum(len(path.read_bytes().splitlines()) for path in (root / name).rglob("*.py"))
        for name in ("fixtures", "tests")
    }
    sizes["words"] = sum(len(page.read_text("utf-8").split()) for page in pages if page.exists())
    return [
        f"{name}: {size:,} of {budget[name]:,}"
        for name, size in sizes.items()
        if size > budget[name]
    ]


def test_the_project_stays_within_its_budget() -> None:
    """What is new takes its room from something that goes."""
    assert over_budget(REPOSITORY, BUDGET) == []


def test_a_line_or_a_word_too_many_is_over_budget(tmp_path: Path) -> None:
    for name in ("fixtures/a/b.py", "tests/c.py", "docs/d.md", "README.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n", encoding="utf-8")
    assert over_budget(tmp_path, {"fixtures": 1, "tests": 1, "words": 6}) == []
    assert over_budget(tmp_path, {"fixtures": 0, "tests": 0, "words": 5}) == [
        "fixtures: 1 of 0",
        "tests: 1 of 0",
        "words: 6 of 5",
    ]
