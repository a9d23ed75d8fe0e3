"""What a run says it judged: on a device that nobody knows, and where nothing could be judged."""

from __future__ import annotations

import json
import re
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from fixtures.commands.report import main
from fixtures.records.baseline_store import BaselineStore
from fixtures.records.run import RESULTS
from tests.support import fake_bench
from tests.support.running import run_suite
from tests.support.runs import entry

BF16 = "[storybook-bf16]"
NOTHING = "Nothing was judged: every test of the selected scenarios was skipped; -rs shows"


def run(folder: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A fake run against the baselines in the folder."""
    return run_suite(
        *(*fake_bench.OPTIONS, "--perf-baselines", str(folder), *options), **environment
    )


def failed_tests(result: subprocess.CompletedProcess[str]) -> list[str]:
    """The tests that failed, as `-rf` lists them."""
    failed = [line for line in result.stdout.splitlines() if line.startswith("FAILED")]
    return [line.partition("::")[2].partition(" ")[0] for line in failed]


def store(folder: Path, device: str, technique: str) -> Path:
    """The file of an entry that is stored for another device, or of another technique."""
    baselines = BaselineStore(folder)
    baselines.stage(device, "storybook", technique, entry())
    baselines.commit()
    return baselines.path(device, "storybook")


# Rounds


def test_pytest_benchmark_reports_the_rounds_of_the_first_sample(tmp_path: Path) -> None:
    results = tmp_path / "benchmark.json"
    report = ("--benchmark-json", str(results), "--perf-report", str(tmp_path))
    chosen = ("-k", f"test_latency and {BF16}")
    run(tmp_path, *chosen, *report, FAKE_SHARES_CORE="1")
    [reported] = json.loads(results.read_text(encoding="utf-8"))["benchmarks"]
    first, *_ = RESULTS.read(tmp_path / "results.json").scenarios["storybook-bf16"].timings
    rounds = [second for group in first.groups for second in group.candidate_s]
    assert reported["extra_info"]["scenario"] == "storybook-bf16"
    assert reported["stats"]["data"] == pytest.approx(rounds)


# A device that nobody knows


def test_on_a_device_that_nobody_knows_what_needs_no_baseline_is_judged(tmp_path: Path) -> None:
    store(tmp_path, "simulated", "bf16")
    result = run(tmp_path, "-k", f"{BF16} or [storybook-fp32]", "-rf", FAKE_PALE="storybook-fp32")
    assert failed_tests(result) == ["test_visual_equivalence[storybook-fp32]"]
    assert "the image differs from the frozen reference's: image difference 5.1" in result.stdout
    assert "differs from the baseline's" not in result.stdout
    assert "2 judged: 1 passed, 1 failed, 0 undecided; latency judged for 0 of 2;" in result.stdout
    without = (
        "latency, memory, component calls, counts, host calls: nothing recorded here yet; record"
    )
    assert f"not judged on storybook: {without}" in result.stdout


def test_a_scenario_without_an_entry_fails_once_and_its_wrong_image_besides(tmp_path: Path) -> None:
    chosen = ("-k", "[storybook-fp32] and not test_latency", "--perf-strict", "-rfs")
    result = run(tmp_path, *chosen, FAKE_PALE="storybook-fp32")
    assert result.stdout.count("no entry in") == 1
    assert "no baseline: see test_scenario_has_an_entry[storybook-fp32]" in result.stdout
    assert failed_tests(result) == [
        "test_visual_equivalence[storybook-fp32]",
        "test_scenario_has_an_entry[storybook-fp32]",
    ]
    assert "no baseline is stored for" not in result.stdout
    assert "nothing recorded here yet" not in result.stdout
    # Where nobody else says so the figure itself fails.
    alone = run(tmp_path, "-k", f"{BF16} and test_counters", "--perf-strict", "-rf")
    assert failed_tests(alone) == ["test_counters[storybook-bf16]"]
    assert "no baseline is stored for its counts; accept it with: " in alone.stdout


def test_each_fault_fails_one_test_and_is_in_the_table(recorded: Path) -> None:
    result = run(
        recorded,
        *("-k", f"{BF16} or [storybook-fp32] or [storybook-sdpa]", "-rf", "--show-capture=no"),
        FAKE_CALLS="storybook-bf16",
        FAKE_PALE="storybook-fp32",
        FAKE_RAISES="storybook-sdpa",
    )
    assert result.returncode == pytest.ExitCode.TESTS_FAILED, result.stdout
    assert sorted(failed_tests(result)) == [
        "test_activation[storybook-sdpa]",
        "test_host_calls[storybook-bf16]",
        "test_visual_equivalence[storybook-fp32]",
    ]
    said = "3 judged: 0 passed, 3 failed, 0 undecided; latency judged for 2 of 3, limit "
    assert said in result.stdout
    assert "storybook (weights: embedded) on fake" in result.stdout
    assert "(+50) FAIL" in result.stdout
    assert "bf16: regression: host calls: " in result.stdout
    assert "+50 a step" in result.stdout
    for whose in ("frozen reference", "baseline"):
        assert re.search(rf"storybook-fp32: .*differs from the {whose}'s: .*limit", result.stdout)
    assert "changed since the baseline: no package version" in result.stdout
    assert "sdpa: broken: raised E (diffusers/models/a.py:12)" in result.stdout


# Nothing was judged


@pytest.mark.parametrize(
    ("options", "fails"),
    [
        (["-k", "test_counters", "-q"], True),
        (["--benchmark-only"], True),
        (["--benchmark-only", "-k", "test_entry_has_a_scenario", "-q"], True),
        # Where no scenario was met, or tests are only collected, there is nothing to judge.
        (["-k", "test_entry_has_a_scenario"], False),
        (["-k", "test_counters", "--collect-only", "-q"], False),
    ],
    ids=str,
)
def test_a_run_that_judged_nothing_of_what_it_met_fails_and_says_so(
    options: list[str], fails: bool, tmp_path: Path
) -> None:
    result = run(tmp_path, *options)
    assert result.returncode == fails, result.stdout
    assert (NOTHING in result.stdout) == ("Nothing was judged" in result.stdout) == fails


@pytest.mark.parametrize("options", [["-q"], ["--benchmark-only", "-k", BF16]], ids=" ".join)
def test_a_refresh_that_recorded_nothing_fails_and_says_so(
    options: list[str], tmp_path: Path
) -> None:
    refresh = ("--perf-update-baselines", "--perf-reason", "test")
    result = run(tmp_path, "-k", "storybook-xformers", *refresh, *options)
    assert result.returncode == pytest.ExitCode.TESTS_FAILED, result.stdout
    assert "No baseline was recorded: every selected scenario was skipped; -rs" in result.stdout
    assert not (tmp_path / fake_bench.KEY / "storybook.json").exists()


# An empty shard


@pytest.mark.parametrize(("refresh", "options"), [(False, ["-q"]), (True, [])])
def test_an_empty_shard_is_no_failure_and_says_so(
    refresh: bool, options: list[str], tmp_path: Path
) -> None:
    record = ("--perf-update-baselines", "--perf-reason", "test") if refresh else ()
    result = run(tmp_path, "--perf-shard", "99/99", "-k", BF16, *record, *options)
    assert result.returncode == pytest.ExitCode.OK, result.stdout
    said = "Shard 99/99 is empty: every selected scenario is in another shard."
    assert said in result.stdout
    assert "selects no scenario" not in result.stdout
    assert not list(tmp_path.rglob("*.json"))


def test_the_report_of_an_empty_shard_merges_with_the_others(tmp_path: Path) -> None:
    chosen = ("-k", f"test_activation and {BF16}")
    reports = {}
    for shard in ("1/2", "2/2"):
        reports[shard] = tmp_path / shard.replace("/", "-")
        report = ("--perf-report", str(reports[shard]))
        result = run(tmp_path, "--perf-shard", shard, *chosen, *report)
        assert result.returncode == pytest.ExitCode.OK, result.stdout
    parts = [str(folder / "results.json") for folder in reports.values()]
    merged = tmp_path / "merged"
    assert main(["--merge", *parts, "--perf-report", str(merged)]) == 0
    whole = RESULTS.read(merged / "results.json")
    assert list(whole.scenarios) == ["storybook-bf16"]
    assert whole.device_key == fake_bench.KEY


def test_what_no_shard_has_is_a_mistake(tmp_path: Path) -> None:
    result = run(tmp_path, "--perf-shard", "2/2", "-k", "storybook-bff")
    assert result.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, result.stdout
    assert "selects no scenario: list all of them with" in result.stdout
    assert "is empty" not in result.stdout


# A failure while a fixture measures


@pytest.mark.parametrize(
    "options",
    [[], pytest.param(["-n", "2"], marks=pytest.mark.long)],
    ids=["one process", "two workers"],
)
def test_a_verdict_that_fails_in_a_fixture_is_the_test_s_failure(
    options: list[str], tmp_path: Path
) -> None:
    junit = tmp_path / "junit.xml"
    result = run(
        tmp_path,
        *("-k", f"test_counters and {BF16}", f"--junitxml={junit}", *options),
        FAKE_IDLE="storybook-bf16",
    )
    assert result.returncode == pytest.ExitCode.TESTS_FAILED, result.stdout
    assert "ERROR" not in result.stdout
    assert "FAILED perf_tests/test_counters.py::test_counters[storybook-bf16]" in result.stdout
    (case,) = ElementTree.parse(junit).iter("testcase")
    (failure,) = case.findall("failure")
    assert "storybook-bf16: not in effect" in failure.attrib["message"]
    assert case.find("error") is None
