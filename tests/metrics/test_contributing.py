"""A new count as CONTRIBUTING.md describes it: followed in a copy of the repository."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.settings import REPOSITORY
from tests.support.running import own_environment

TEXT = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTION = re.findall(r"^## A new count$(.*?)^## ", TEXT, re.MULTILINE | re.DOTALL)[0]
BLOCKS = re.findall(r"([^`]*(?:`[^`]+`[^`]*)*)```(?:python)?\n(.*?)```", SECTION, re.DOTALL)
COPIED = ("conftest.py", "pyproject.toml", "fixtures", "perf_tests", "baselines")
SCENARIO = "storybook-fp32"
DEVICE = ("--perf-device", "cpu", "-k", f"[{SCENARIO}] and not latency")


def follow(folder: Path) -> set[str]:
    """Write and insert every block; returns the files that were touched."""
    touched: list[str] = []
    for words, code in BLOCKS:
        quoted = re.findall(r"`([^`]+)`", words)
        files = [name for name in quoted if re.fullmatch(r"[\w/]+\.py", name)]
        below = words.rpartition("below `")[2].rpartition("`")[0] if "below `" in words else ""
        path = folder / (files[-1] if files else touched[-1])
        touched.append(str(path.relative_to(folder)))
        if not below:
            assert not path.exists(), path
            path.write_text(code, encoding="utf-8")
            continue
        source = path.read_text(encoding="utf-8")
        assert source.count(f"{below}\n") == 1, (path, below)
        path.write_text(source.replace(f"{below}\n", f"{below}\n{code}"), encoding="utf-8")
    return set(touched)


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "perf_tests", *DEVICE, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        env={**own_environment(), "COLUMNS": "240"},  # room for every column
        check=False,
    )


@pytest.mark.long
def test_a_count_that_follows_the_section_is_stored_judged_and_shown(tmp_path: Path) -> None:
    for name in COPIED:
        copy = shutil.copytree if (REPOSITORY / name).is_dir() else shutil.copy2
        copy(REPOSITORY / name, tmp_path / name)
    # Besides its row in the docs.
    assert len(follow(tmp_path)) == 2

    before = run(tmp_path)
    assert before.returncode == 0, before.stdout

    refresh = ("--perf-update-baselines", "--perf-reason", "a new count", "-k", f"[{SCENARIO}]")
    recorded = run(tmp_path, *refresh)
    assert recorded.returncode == 0, recorded.stdout
    path = tmp_path / "baselines/cpu/storybook.json"
    stored = json.loads(path.read_text("utf-8"))
    places = stored["scenarios"]["fp32"]["counts"]["rows"]["allocations"]
    count, a_step = places[""][""]
    assert count > 1000

    after = run(tmp_path)
    assert after.returncode == 0, after.stdout
    assert re.search(r" allocations ", after.stdout), "a column of its own"
    assert f" {count:,} " in after.stdout

    places[""][""] = [count - 1, a_step]
    path.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    more = run(tmp_path)
    assert more.returncode == 1
    assert f"{SCENARIO}: counts changed: allocations {count - 1:,} -> {count:,} (+1" in more.stdout
