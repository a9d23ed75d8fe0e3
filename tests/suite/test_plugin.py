"""What a log says of a run, and how many latencies it judges."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from fixtures.records.baseline_store import BaselineStore
from fixtures.records.run import RESULTS
from fixtures.settings import Settings
from fixtures.suite.session import PerfSession
from fixtures.worker.protocol import Facts
from tests.suite.test_judged import run
from tests.support import fake_bench
from tests.support.fake_device import FakeDevice


def item(path: str, *fixtures: str) -> pytest.Item:
    return cast(pytest.Item, SimpleNamespace(path=path, fixturenames=fixtures))


def test_every_test_that_asks_for_a_latency_is_a_comparison_on_every_shard(tmp_path: Path) -> None:
    perf = PerfSession(Settings(shard=(1, 4)), BaselineStore(tmp_path))
    perf.device = Facts.of(FakeDevice())
    perf.items = [
        *[item("renamed.py", "scenario", "timed", "judge")] * 3,
        item("test_latency.py", "scenario", "observed"),
        cast(pytest.Item, SimpleNamespace(path="a text file")),
    ]
    assert perf.cases.comparisons == 4 * 3


def test_a_log_says_what_is_tested_and_against_what(tmp_path: Path) -> None:
    two = ("-k", "[storybook-bf16] or [storybook-sdpa]")
    recorded = run(tmp_path, *two, "--perf-update-baselines", "--perf-reason", "test").stdout
    assert "\nagainst: " not in recorded
    stored = tmp_path / fake_bench.KEY / "storybook.json"
    text = stored.read_text(encoding="utf-8")
    stored.write_text(re.sub(r'"diffusers": "[^"]*"', '"diffusers": "0.36.0"', text))
    report = tmp_path / "report"
    lines = run(tmp_path, *two, "--perf-report", str(report)).stdout.splitlines()
    (number,) = (number for number, line in enumerate(lines) if line.startswith("under test: "))
    assert re.search("diffusers [0-9.]+, torch .* on fake .Testron 9000.", lines[number])
    assert "changed since: diffusers 0.36.0 -> " in lines[number + 1]
    for record in RESULTS.read(report / "results.json").scenarios.values():
        assert record.changed[0].startswith("diffusers 0.36.0 -> ")
    assert not any(line.startswith("Name (time in") for line in lines)  # of pytest-benchmark
    assert not run(tmp_path, *two, "-q").stdout.count("under test: ")
