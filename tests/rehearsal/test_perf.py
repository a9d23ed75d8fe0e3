"""Runs and a refresh of somebody with two GPUs, by the real commands on a machine without one."""

from __future__ import annotations

import re

import pytest

from fixtures.records.baseline_store import BaselineStore
from tests.rehearsal.commands import Done, Machine
from tests.rehearsal.machine import HOT, SLOW, UUIDS

pytest.importorskip("xdist")

KEY = "nvidia-h200"
FP16 = ("-k", "[storybook-fp16] and not claims")
SEVERAL = ("xformers", "group_offload_stream")
UNTIMED = (
    "-k",
    f"({' or '.join(f'[storybook-{name}]' for name in SEVERAL)}) and not latency and not claims",
)


@pytest.fixture(scope="module")
def refreshed(machine: Machine) -> Done:
    """The first baseline of the card."""
    return machine.pytest(*FP16, "--perf-update-baselines", "--perf-reason", "rehearsed")


def _verdict_line(done: Done) -> str:
    return next(line for line in done.said.splitlines() if " judged: " in line)


def test_a_first_run_gives_every_worker_a_card_of_its_own_and_says_what_records_it(
    machine: Machine,
) -> None:
    done = machine.pytest(*UNTIMED, "-n", "auto")
    assert done.code == 0, done.said
    assert f"storybook (weights: embedded) on {KEY}" in done.said
    assert "nothing recorded here yet; record it with: python -m pytest perf_tests" in done.said
    judged = len(SEVERAL)
    assert _verdict_line(done).startswith(f"{judged} judged: {judged} passed, 0 failed")
    of_workers = {(user.worker, user.uuid) for user in done.users if user.worker != "-"}
    assert of_workers == {("gw0", UUIDS[0]), ("gw1", UUIDS[1])}


def test_a_refresh_measures_in_fresh_processes_and_names_its_folder_after_the_card(
    machine: Machine, refreshed: Done
) -> None:
    assert refreshed.code == 0, refreshed.said
    path = machine.baselines / KEY / "storybook.json"
    assert f"Baseline written: {path}" in refreshed.said
    entry = BaselineStore(machine.baselines).entry(KEY, "storybook", "fp16")
    assert entry is not None
    assert entry.latency[0].hardware["power_limit_w"] == 700
    assert entry.component_peak_bytes
    assert entry.counts.total("kernel launches") > 500
    assert len(entry.latency[0].ratios) == 2
    # What the device is, two observations and two samples, at least.
    assert len({user.pid for user in refreshed.users}) == len(refreshed.users) >= 5


def test_an_unchanged_technique_passes_and_the_report_says_how_the_card_was(
    machine: Machine, refreshed: Done
) -> None:
    done = machine.pytest(*FP16, f"--perf-report={machine.folder / 'unchanged'}")
    assert done.code == 0, done.said
    expected = "1 judged: 1 passed, 0 failed, 0 undecided; latency judged for 1 of 1"
    assert _verdict_line(done).startswith(expected)
    page = (machine.folder / "unchanged" / "report.html").read_text(encoding="utf-8")
    assert "driver 580.65.06" in page


def test_a_technique_that_does_more_is_a_regression_by_name(
    machine: Machine, refreshed: Done
) -> None:
    done = machine.pytest(*FP16, **{SLOW: "fp16"})
    assert done.code == pytest.ExitCode.TESTS_FAILED, done.said
    assert re.search(r"storybook-fp16: latency is x[\d.]+ of the reference's, \+", done.said)
    assert "storybook-fp16: counts changed: kernel launches " in done.said
    summary = re.findall(r"^fp16: regression: ([\w ]+): ", done.said, re.MULTILINE)
    assert summary == ["counts", "latency ratio", "latency"]


def test_a_card_that_is_throttled_leaves_the_latency_undecided(
    machine: Machine, refreshed: Done
) -> None:
    done = machine.pytest("-k", "test_latency[storybook-fp16]", "-rs", **{HOT: "1"})
    assert done.code == pytest.ExitCode.OK, done.said
    said = re.search(r"(\d+) of \1 groups of rounds were disturbed \(it was throttled", done.said)
    assert said, done.said
