"""`docs/reliability.md` counts the faults that tests try; the count is the tests' own."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter

from fixtures.settings import REPOSITORY
from tests.support.running import own_environment

PAGE = REPOSITORY / "docs" / "reliability.md"
TEST = re.compile(r"`(tests/[\w/]+\.py::\w+)`")


def stated() -> dict[tuple[str, ...], int]:
    """The cases that the page states, by the tests of each row."""
    rows = [line.split("|") for line in PAGE.read_text().splitlines() if TEST.search(line)]
    return {tuple(TEST.findall(row[4])): int(row[3]) for row in rows if len(row) == 6}


def collected(tests: set[str]) -> Counter[str]:
    """How many cases each test has."""
    files = sorted({test.partition("::")[0] for test in tests})
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *files],
        cwd=REPOSITORY,
        env=own_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return Counter(line.partition("[")[0] for line in result.stdout.splitlines() if "::" in line)


def test_every_fault_that_the_page_counts_is_tried() -> None:
    page = stated()
    assert len(page) > 15
    tests = collected({test for row in page for test in row})
    assert {row: sum(tests[test] for test in row) for row in page} == page
    assert all(tests[test] for row in page for test in row)
