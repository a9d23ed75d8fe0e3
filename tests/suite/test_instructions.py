"""Instruction counts of a run: on request alone, together, and agreeing in a refresh."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar
from unittest import mock

import pytest

from fixtures.commands.compare.command_line import counting, parsed
from fixtures.commands.compare.comparing import METRICS
from fixtures.devices import Device
from fixtures.measuring.recording import put_instructions, record_of, run_on
from fixtures.records.instructions import Instructions
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.scenarios import Scenario, scenarios
from fixtures.settings import Settings
from fixtures.suite.instructions import InstructionCounts
from tests.support import fake_bench
from tests.support.fake_device import FakeDevice
from tests.support.running import run_here
from tests.support.runs import instructions as counted

STORED = counted()
FOUND = scenarios(["storybook"])[:4]
FP32 = "[storybook-fp32]"
RECORD = ("--perf-update-baselines", "--perf-reason", "test", "-k", FP32)
ASKED = "--perf-instructions"


class FakeCounter:
    """InstructionCounts nothing, and in the order of `made` it finds this."""

    made: ClassVar[list[Instructions]] = []

    def __init__(self, device: Device) -> None:
        self.device = device

    def count(self, scenario: Scenario) -> Instructions:
        return self.made.pop(0)

    def close(self) -> None:
        self.made.clear()


def run(folder: Path, *options: str, made: Sequence[Instructions] = ()) -> str:
    """What a fake run against the baselines in the folder prints, where this is counted."""
    FakeCounter.made[:] = made
    with mock.patch("fixtures.suite.instructions.InstructionCounter", FakeCounter):
        result = run_here(*fake_bench.OPTIONS, "--perf-baselines", str(folder), "-rfs", *options)
    return " ".join(result.stdout.split())


def test_they_are_stored_judged_and_kept_on_request_alone(tmp_path: Path) -> None:
    worse = counted(step={"python": 3_000_000})
    assert "instructions" not in run(tmp_path, *RECORD)
    assert "instructions" not in run(tmp_path, "-k", FP32)
    nothing = run(tmp_path, "-k", FP32, ASKED)
    assert "not judged: the baseline holds none; store them with:" in nothing

    said = run(tmp_path, *RECORD, ASKED, made=[STORED, worse])
    assert "two counts of instructions differ (python +3,000,000 a step" in said
    said = run(tmp_path, *RECORD, ASKED, made=[STORED, STORED])
    assert "instructions per step none -> 719.40 M" in said
    # A refresh of the rest keeps them.
    assert "instructions per step 719.40 M" in run(tmp_path, *RECORD)

    chosen = ("-k", f"{FP32} and test_instructions", ASKED)
    assert "1 judged: 1 passed" in run(tmp_path, *chosen, made=[STORED])
    failed = run(tmp_path, *chosen, made=[worse])
    assert "FAILED perf_tests/test_instructions.py::test_instructions[storybook-fp32]" in failed
    assert "python +3,000,000 a step (+20.000 %, limit 0.5 %)" in failed
    assert f"{ASKED} --perf-baselines {tmp_path}" in failed, "what accepts it counts, too"
    assert "722.40 M" in failed, "a column of its own"


def test_all_are_counted_when_the_first_is_asked_for_two_at_a_time() -> None:
    both = threading.Barrier(2, timeout=10)
    asked: list[str] = []
    shown: list[str] = []

    def count(scenario: Scenario) -> Instructions:
        both.wait()  # passes only where two count at once
        asked.append(scenario.id)
        return STORED

    counts = InstructionCounts(count, FOUND, at_once=2, show=shown.append)
    assert counts.of(FOUND[2]) is STORED
    assert sorted(asked) == sorted(one.id for one in FOUND)
    counts.of(FOUND[0])
    assert len(asked) == 4
    assert shown[-2:] == ["instructions under Valgrind: 4 of 4 counted", ""]


def test_what_one_fails_with_is_its_own() -> None:
    def count(scenario: Scenario) -> Instructions:
        if scenario is FOUND[1]:
            raise ScenarioError(scenario.id, Outcome.BROKEN, "crashed")
        return STORED

    counts = InstructionCounts(count, FOUND)
    assert counts.of(FOUND[0]) is STORED
    for _ in range(2):
        with pytest.raises(ScenarioError, match="crashed"):
            counts.of(FOUND[1])


def test_a_refresh_counts_twice_and_both_have_to_agree() -> None:
    made = iter([STORED, STORED, STORED, counted(step={"native": 20_000})])
    counts = InstructionCounts(lambda scenario: next(made), FOUND[:2], times=2)
    assert counts.of(FOUND[0]) is STORED
    with pytest.raises(ScenarioError, match=r"differ \(native \+20,000 a step") as caught:
        counts.of(FOUND[1])
    assert caught.value.outcome is Outcome.INCONCLUSIVE


def test_a_side_writes_its_count_or_why_there_is_none() -> None:
    record = record_of(run_on(FakeDevice(), ""), FOUND[0])
    put_instructions(record, FOUND[0], lambda scenario: STORED)
    assert record.instructions is STORED

    def fail(scenario: Scenario) -> Instructions:
        raise ScenarioError(scenario.id, Outcome.UNSUPPORTED, "no Valgrind")

    put_instructions(record, FOUND[0], fail)
    assert record.uncounted == "no Valgrind"


def test_commands_count_where_instructions_are_named_and_runs_where_they_are_asked_for() -> None:
    assert "instructions" not in METRICS
    sides = ["--base", "diffusers==0.41.0", "--head", "diffusers==0.42.1"]
    assert parsed([*sides, "--metric", "instructions"], None).metric == ["instructions"]
    assert counting(Settings(), ["latency", "instructions"]) == Settings(instructions=True)
    assert counting(Settings(instructions=True), METRICS) == Settings()
    # What accepts a verdict counts, too.
    assert replace(Settings(), instructions=True).chosen == "--perf-instructions"
