"""Run the last test first: `pytest perf_tests -p tests.support.reversed_order`."""

from __future__ import annotations

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """After the suite has put them in its own order."""
    items.reverse()
