"""No test depends on which ran before it: any order and any file alone gives the same verdicts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.records.run import RESULTS, RunRecord
from tests.support import fake_bench
from tests.support.running import run_suite

REVERSED = ("-p", "tests.support.reversed_order")
FAULTS = {
    "FAKE_MORE": "storybook-bf16",
    "FAKE_SLOW": "storybook-sdpa",
    "FAKE_IDLE": "storybook-channels_last",
    "FAKE_LEAK": "storybook-tf32",
}


def run(folder: Path, *options: str, tests: str = "perf_tests", **environment: str) -> RunRecord:
    """What a run found, in an order that does not depend on its own."""
    result = run_suite(*options, "--perf-report", str(folder), tests=tests, **environment)
    assert result.returncode in (0, 1), result.stdout + result.stderr
    assert "Error" not in result.stdout
    found = RESULTS.read(folder / "results.json")
    for record in found.scenarios.values():
        record.verdicts.sort(key=lambda verdict: (verdict.metric, verdict.sentence))
    notes = sorted(note for note in found.notes if str(folder) not in note)
    return replace(found, notes=notes, recorded_at="", commit="")


def sentences(found: RunRecord) -> dict[str, set[str]]:
    """Every verdict's sentence by scenario."""
    return {
        name: {verdict.sentence for verdict in record.verdicts}
        for name, record in found.scenarios.items()
    }


def fake(baselines: Path) -> tuple[str, ...]:
    """The options of a fake run against these baselines."""
    return (*fake_bench.OPTIONS, "--perf-baselines", str(baselines))


@pytest.fixture(scope="module")
def whole(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    """A whole fake run in which four scenarios fail, each in a way of its own."""
    return run(tmp_path_factory.mktemp("whole"), *fake(recorded), **FAULTS)


def test_the_whole_run_fails_where_there_is_a_fault_and_nowhere_else(whole: RunRecord) -> None:
    failed = {
        name: [one.metric for one in record.verdicts if one.outcome.fails(strict=False)]
        for name, record in whole.scenarios.items()
    }
    assert {name: metrics for name, metrics in failed.items() if metrics} == {
        "storybook-bf16": ["counts"],
        "storybook-sdpa": ["latency ratio"],
        "storybook-channels_last": ["activation"],
        "storybook-tf32": ["faults"],
    }
    assert sum(whole.claims.values()) > 10


def test_the_last_test_first_finds_the_same(
    recorded: Path, whole: RunRecord, tmp_path: Path
) -> None:
    assert run(tmp_path, *fake(recorded), *REVERSED, **FAULTS) == whole


@pytest.mark.parametrize("file", ["test_latency.py", "test_documented_claims.py"])
def test_one_file_alone_says_what_it_says_in_the_whole_run(
    file: str, recorded: Path, whole: RunRecord, tmp_path: Path
) -> None:
    found = run(tmp_path, *fake(recorded), tests=f"perf_tests/{file}", **FAULTS)
    everything = sentences(whole)
    for name, said in sentences(found).items():
        assert said <= everything[name]
    idle = sentences(found)["storybook-channels_last"]
    assert idle == everything["storybook-channels_last"], "what is not in effect fails there, too"
    if file == "test_latency.py":
        slow = found.scenarios["storybook-sdpa"].verdict
        assert slow is not None
        assert slow.metric == "latency ratio"
    if file == "test_documented_claims.py":
        assert found.claims == whole.claims


@pytest.mark.long
def test_real_figures_do_not_depend_on_the_order_either(tmp_path: Path) -> None:
    one = ("-k", "[storybook-attention_slicing]")
    options = ("--perf-device", "cpu", "--benchmark-disable", *one)
    forward = run(tmp_path / "forward", *options)
    assert len(forward.scenarios) == 1
    assert forward.claims
    assert run(tmp_path / "reversed", *options, *REVERSED) == forward
