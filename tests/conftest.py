"""What all tests of the bench share."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

# The same examples on every machine, and no limit of time: a loaded runner is slow, not wrong.
settings.register_profile("bench", deadline=None, derandomize=True, database=None)
settings.load_profile("bench")


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Baselines of every storybook scenario, recorded on the fake bench; copy them to edit them."""
    from tests.support import fake_bench
    from tests.support.running import run_suite

    folder = tmp_path_factory.mktemp("recorded")
    refresh = ("--perf-update-baselines", "--perf-reason", "test")
    result = run_suite(*fake_bench.OPTIONS, *refresh, "--perf-baselines", str(folder))
    assert result.returncode == pytest.ExitCode.OK, result.stdout
    return folder
