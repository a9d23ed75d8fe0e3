"""The path of a run in `docs/architecture.md`, held against the code and against a run."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType

from fixtures.settings import REPOSITORY
from tests.support import fake_bench
from tests.support.running import run_suite

PAGE = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
HOPS = re.findall(r"^\d+\. (.*(?:\n    .*)*)", PAGE.partition("## A run")[2], re.MULTILINE)
MODULES = [re.findall(r"`([\w/]+\.py)`", hop) for hop in HOPS]
ENTERED = (
    ("fixtures/suite/plugin.py", "pytest_configure"),
    ("fixtures/settings.py", "parse"),
    ("fixtures/scenarios.py", "scenarios"),
    ("fixtures/measuring/recording.py", "record_observation"),
    ("fixtures/suite/cases.py", "case"),
    ("fixtures/metrics/peak_memory.py", "judge_peak_memory"),
    ("fixtures/suite/judging.py", "take"),
    ("fixtures/report/files.py", "write_report"),
)
"""What a run on the fake bench, which observes and times nothing, calls in this order."""


def test_the_page_names_a_dozen_hops_and_each_is_a_module() -> None:
    assert len(HOPS) == 12
    for hop, modules in zip(HOPS, MODULES, strict=True):
        assert modules, hop
        for module in modules:
            assert (REPOSITORY / module).is_file(), module


def test_what_a_hop_hands_on_is_a_name_in_its_module() -> None:
    handed_on = [(hop, value) for hop in HOPS for value in re.findall(r"`([A-Z]\w+)`", hop)]
    assert len({hop for hop, _ in handed_on}) > 6
    for hop, value in handed_on:
        modules = MODULES[HOPS.index(hop)]
        sources = [(REPOSITORY / module).read_text(encoding="utf-8") for module in modules]
        assert any(re.search(rf"\b{value}\b", source) for source in sources), value


def test_a_run_enters_the_modules_in_the_order_of_the_page(recorded: Path, tmp_path: Path) -> None:
    entered: list[tuple[str, str]] = []

    def profile(frame: FrameType, event: str, argument: object) -> None:
        path, name = frame.f_code.co_filename, frame.f_code.co_name
        for module, function in ENTERED:
            if event == "call" and name == function and path.endswith(module):
                entered.append((module, function))

    chosen = ("-k", "test_peak_memory and [storybook-bf16]", "--perf-baselines", str(recorded))
    sys.setprofile(profile)
    try:
        result = run_suite(*fake_bench.OPTIONS, *chosen, "--perf-report", str(tmp_path))
    finally:
        sys.setprofile(None)
    assert result.returncode == 0, result.stdout
    assert tuple(dict.fromkeys(entered)) == ENTERED
    named = [module for modules in MODULES for module in modules]
    assert [module for module, _ in ENTERED if module not in named] == []
