"""Workers of pytest-xdist find together what one process finds alone, and they write nothing."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from _pytest.config import Config

from fixtures.catalogue.matrix import groups_of, scenarios
from fixtures.suite.parallel import pytest_cmdline_main
from tests.suite.test_judged import run
from tests.support import fake_bench
from tests.support.running import run_here, run_suite

pytest.importorskip("xdist")

REFRESH = ("--perf-update-baselines", "--perf-reason", "test")
pytestmark = pytest.mark.long
TWO = ("-n", "2")
FAULTS = {"FAKE_MORE": "storybook-bf16", "FAKE_IDLE": "storybook-channels_last"}


def _run(folder: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run(folder, "-k", "not test_latency", *options, **environment)


def _stored(folder: Path) -> Path:
    return folder / fake_bench.KEY / "storybook.json"


def summary(output: str) -> list[str]:
    """What the suite itself says at the end of a run."""
    lines = output.splitlines()
    start = next(number for number, line in enumerate(lines) if " performance " in line)
    said = [line for line in lines[start:] if not line.startswith(("=", "FAILED", "ERROR"))]
    return [line for line in said if line.strip()]


def table(output: str) -> list[str]:
    """The techniques in their order."""
    return re.findall(r"^(\w+) +(?:pass|fail|regression|not active)\b", output, re.MULTILINE)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder of baselines that one process recorded, and what it said."""
    folder = tmp_path_factory.mktemp("baselines")
    result = _run(folder, *REFRESH)
    assert result.returncode == pytest.ExitCode.OK, result.stdout + result.stderr
    return folder, result.stdout


@pytest.fixture(scope="module")
def serial(recorded: tuple[Path, str]) -> subprocess.CompletedProcess[str]:
    """A run in one process, with a regression, a technique without effect, and notes."""
    return _run(recorded[0], **FAULTS)


@pytest.fixture(scope="module")
def parallel(recorded: tuple[Path, str]) -> subprocess.CompletedProcess[str]:
    """The same in two workers, with a line for each test."""
    return _run(recorded[0], *TWO, "-v", **FAULTS)


def test_the_summary_of_two_workers_is_that_of_one_process(
    parallel: subprocess.CompletedProcess[str], serial: subprocess.CompletedProcess[str]
) -> None:
    assert parallel.returncode == serial.returncode == pytest.ExitCode.TESTS_FAILED
    assert sorted(summary(parallel.stdout)) == sorted(summary(serial.stdout))
    assert table(parallel.stdout) == table(serial.stdout)
    assert "16 judged: 14 passed, 2 failed" in serial.stdout
    assert "not judged on storybook: counts of traced_unet: " in serial.stdout
    assert "unsupported on storybook: sequential_cpu_offload, " in serial.stdout
    assert "; documented claims: 7 confirmed, " in summary(serial.stdout)[-1]


def test_all_tests_of_a_scenario_and_of_those_it_is_compared_with_run_in_one_worker(
    parallel: subprocess.CompletedProcess[str],
) -> None:
    matrix = scenarios(["storybook"])
    groups = groups_of(matrix)
    workers: dict[str, set[str]] = {}
    for line in parallel.stdout.splitlines():
        if line.startswith("[gw") and "[storybook" in line:
            name = line.rpartition("[")[2].partition("]")[0]
            workers.setdefault(groups[name], set()).add(line[:5])
    assert workers.keys() == {
        groups[scenario.id] for scenario in matrix if not scenario.technique.on_request
    }
    assert all(len(names) == 1 for names in workers.values()), workers
    assert len(set.union(*workers.values())) == 2


def test_a_worker_stays_at_a_workload_as_long_as_there_is_work_of_it(tmp_path: Path) -> None:
    both = ("--perf-workload", "storybook-dit", "-k", "test_peak_memory")
    lines = run(tmp_path, *TWO, "-v", *both).stdout.splitlines()
    ran = [
        (line[:5], "-dit-" in line) for line in lines if re.match(r"\[gw\d\].*\[storybook", line)
    ]
    for worker in ("[gw0]", "[gw1]"):
        workloads = [is_second for name, is_second in ran if name == worker]
        changes = sum(a != b for a, b in pairwise(workloads))
        assert changes <= 1 < len(workloads)
    assert len(ran) > 60


def test_two_workers_record_what_one_process_records(
    recorded: tuple[Path, str], tmp_path: Path
) -> None:
    folder, output = recorded
    result = _run(tmp_path, *TWO, *REFRESH)
    assert result.returncode == pytest.ExitCode.OK, result.stdout + result.stderr
    assert _stored(tmp_path).read_bytes() == _stored(folder).read_bytes()
    assert [path.name for path in _stored(tmp_path).parent.iterdir()] == ["storybook.json"]
    lines = [line.replace(str(tmp_path), str(folder)) for line in summary(result.stdout)]
    assert sorted(lines) == sorted(summary(output))
    assert f"Baseline written: {_stored(folder)}" in output


def test_a_worker_that_crashes_writes_nothing_and_is_named(tmp_path: Path) -> None:
    result = _run(tmp_path, *TWO, *REFRESH, FAKE_CRASH="storybook-bf16")
    assert result.returncode == pytest.ExitCode.TESTS_FAILED, result.stdout
    assert "No baseline was written: worker gw" in result.stdout
    assert "crashed or was stopped." in result.stdout
    assert "crashed while running 'perf_tests/" in result.stdout
    assert "Traceback" not in result.stdout + result.stderr
    assert not _stored(tmp_path).exists()


def test_a_run_that_lost_a_worker_fails_and_says_so(recorded: tuple[Path, str]) -> None:
    result = _run(recorded[0], *TWO, FAKE_CRASH="storybook-bf16")
    assert result.returncode == pytest.ExitCode.TESTS_FAILED, result.stdout
    assert "Figures may be missing: worker gw" in result.stdout
    assert "Traceback" not in result.stdout + result.stderr


def test_without_xdist_the_suite_runs_as_ever(recorded: tuple[Path, str]) -> None:
    result = _run(recorded[0], "-p", "no:xdist", "-k", "[storybook-bf16] and not test_latency")
    assert result.returncode == pytest.ExitCode.OK, result.stdout + result.stderr
    assert "1 judged: 1 passed" in result.stdout


def test_techniques_that_are_compared_are_one_group_and_the_reference_joins_none() -> None:
    matrix = scenarios(["storybook"])
    groups = groups_of(matrix)
    assert groups.keys() == {scenario.id for scenario in matrix}
    for scenario in matrix:
        for claim in scenario.technique.claims:
            other = scenario.with_technique(claim.than)
            if other.id in groups and not other.is_reference:
                assert groups[scenario.id] == groups[other.id]
    reference = matrix[0].reference.id
    assert [name for name, group in groups.items() if group == reference] == [reference]
    assert len(set(groups.values())) > 10


def test_a_worker_that_crashed_is_never_replaced() -> None:
    """It would crash again, or take the accelerator of another one, and xdist may wait for ever."""
    for refused in (("--max-worker-restart=4",), ("--max-worker-restart=1", "--dist", "loadfile")):
        result = run_here(*fake_bench.OPTIONS, *TWO, *refused)
        assert result.returncode == pytest.ExitCode.USAGE_ERROR
        assert "--max-worker-restart is refused" in result.stderr
    for words, dist in (
        ("-n2", "loadgroup"),
        ("-n2 --max-worker-restart=0", "loadgroup"),
        ("-n2 --dist=loadfile", "loadfile"),
        ("--dist=load --tx=2*popen", "load"),
    ):
        config = Config.fromdictargs({}, ["perf_tests", *words.split()])
        pytest_cmdline_main(config)
        assert config.option.maxworkerrestart == "0"
        assert config.option.dist == dist


# Accelerators


def _on_accelerators(
    folder: Path, count: int, *options: str, **environment: str
) -> tuple[subprocess.CompletedProcess[str], set[tuple[str, str]]]:
    """Run on so many fake accelerators; by observation the worker and its accelerator."""
    log = folder / "log"
    result = run_suite(
        *fake_bench.OPTIONS,
        *("--perf-device", "cuda", "--perf-baselines", str(folder), "-k", "test_activation"),
        *options,
        **{"FAKE_ACCELERATORS": str(count), "FAKE_LOG": str(log), **environment},
    )
    lines = log.read_text().splitlines() if log.exists() else []
    return result, {(line.split()[0], line.split()[1]) for line in lines}


def test_every_worker_has_an_accelerator_of_its_own(tmp_path: Path) -> None:
    result, pairs = _on_accelerators(tmp_path, 2, "-n", "auto")
    assert result.returncode == pytest.ExitCode.OK, result.stdout + result.stderr
    assert pairs == {("gw0", "0"), ("gw1", "1")}


def test_accelerators_that_were_chosen_before_stay_chosen(tmp_path: Path) -> None:
    _, pairs = _on_accelerators(tmp_path, 2, "-n", "auto", CUDA_VISIBLE_DEVICES="GPU-a, 5")
    assert pairs == {("gw0", "GPU-a"), ("gw1", "5")}


@pytest.mark.parametrize("words", [("-n", "3"), ("--dist", "load", "--tx", "3*popen")])
def test_more_workers_than_accelerators_are_refused(tmp_path: Path, words: Sequence[str]) -> None:
    result, pairs = _on_accelerators(tmp_path, 2, *words)
    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    assert "-n 3 is refused: there are 2 accelerators" in result.stderr
    assert not pairs
    none, pairs = _on_accelerators(tmp_path, 0, *words)
    assert none.returncode == pytest.ExitCode.USAGE_ERROR
    assert "-n is refused: no accelerator is visible here" in none.stderr
    assert not pairs
