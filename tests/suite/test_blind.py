"""A measurement that sees nothing, or far less than before, fails and is no improvement."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from fixtures.records.baseline_store import BaselineStore
from tests.suite.test_judged import BF16, run
from tests.support import fake_bench
from tests.support.running import run_suite

IMPLAUSIBLE = "that is implausible: the measurement went blind, or the change is real"
EXACT = ("test_counters", "test_peak_memory", "test_host_calls")


def failures(report: Path) -> dict[str, str]:
    """The failed tests of a run and their sentences."""
    return {
        case.attrib["name"].partition("[")[0]: str(failure.text)
        for case in ElementTree.parse(report).iter("testcase")
        for failure in (*case.findall("failure"), *case.findall("error"))
    }


# Edited baselines, on a bench that measures nothing


@pytest.fixture
def stored(recorded: Path, tmp_path: Path) -> Path:
    """A copy of the baseline file, to edit."""
    folder = shutil.copytree(recorded, tmp_path / "baselines")
    return BaselineStore(folder).path(fake_bench.KEY, "storybook")


def judged(path: Path, junit: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A fake run against the file."""
    return run(path.parent.parent, "-k", BF16, f"--junitxml={junit}", **environment)


def _double_counts(entry: Any) -> None:
    for places in entry["counts"]["rows"].values():
        for names in places.values():
            for name, count in names.items():
                names[name] = [2 * each for each in count] if isinstance(count, list) else 2 * count


def _double_peaks(entry: Any) -> None:
    peaks = entry["component_peak_bytes"]
    peaks.update({name: 2 * count for name, count in peaks.items()})


def _multiply_ratios(entry: Any) -> None:
    (session,) = entry["latency"]
    session["ratios"] = [1000 * ratio for ratio in session["ratios"]]


def test_implausible_gains_fail_and_the_command_that_they_give_accepts_them(
    stored: Path, tmp_path: Path
) -> None:
    baseline = json.loads(stored.read_text(encoding="utf-8"))
    for change in (_double_counts, _double_peaks, _multiply_ratios):
        change(baseline["scenarios"]["bf16"])
    stored.write_text(json.dumps(baseline), encoding="utf-8")
    junit = tmp_path / "junit.xml"
    result = judged(stored, junit)
    assert result.returncode == pytest.ExitCode.TESTS_FAILED, result.stdout
    failed = failures(junit)
    assert set(failed) == {*EXACT, "test_latency"}
    commands = set()
    for sentence in failed.values():
        assert IMPLAUSIBLE in sentence
        command = re.search(r"if it is real, accept it with: (.* --perf-reason \"WHY\")", sentence)
        assert command is not None
        commands.add(command[1])
    (command_line,) = commands
    words = shlex.split(command_line)
    accepted = run_suite(*fake_bench.PLUGIN, *words[words.index("--perf-update-baselines") :])
    assert accepted.returncode == pytest.ExitCode.OK, accepted.stdout
    result = judged(stored, junit)
    assert result.returncode == pytest.ExitCode.OK, result.stdout


@pytest.mark.parametrize(
    ("lacks", "test", "sentence"),
    [
        ("clock", "test_latency", "its latency ratio cannot be judged: it has no clock, but"),
        ("images", "test_visual_equivalence", "its SSIM cannot be judged: it has no images, but"),
    ],
)
def test_a_device_that_lost_what_its_baseline_was_measured_with_fails(
    lacks: str, test: str, sentence: str, stored: Path, tmp_path: Path
) -> None:
    junit = tmp_path / "junit.xml"
    result = judged(stored, junit, FAKE_LACKS=lacks)
    assert result.returncode == pytest.ExitCode.TESTS_FAILED, result.stdout
    failed = failures(junit)
    assert set(failed) == {test}
    assert sentence in failed[test]
