"""A scenario in a fresh process: what it brings back, and what becomes of it when it dies."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from fixtures.measuring import fresh_process
from fixtures.measuring.fresh_process import (
    Change,
    FreshProcess,
    prepare_processes,
    process_context,
)
from fixtures.measuring.rounds import Plan
from fixtures.measuring.sampler import beside_its_reference, closing_side, in_fresh_process
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.scenarios import Scenario, find_scenario
from tests.support.fake_device import FakeDevice
from tests.support.fake_scenarios import fake_scenario

SCENARIO = find_scenario("storybook", "sdpa")
PLAN = Plan(groups=2, pairs=1)
Do = Callable[[], object]


def doing(act: Do, scenario: Scenario) -> Scenario:
    """In the other process, a scenario whose every call does this and nothing else."""

    def draw(steps: int | None = None) -> None:
        act()

    return fake_scenario(
        draw,
        scenario.technique.id,
        others={"fp32": fake_scenario(lambda steps=None: work(), "fp32")},
    )


def work() -> None:
    """Take CPU time for several turns of the kernel's scheduler, so that both sides get some."""
    sum(range(2_000_000))


def tell_where() -> None:
    work()
    raise RuntimeError(f"pid {os.getpid()}")


def die_by_signal() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def leave() -> None:
    os.write(2, b"first\nthe last line\n")
    os._exit(3)


def fail() -> None:
    raise ZeroDivisionError("injected")


def hang() -> None:
    time.sleep(600)


def change(act: Do) -> Change:
    return partial(doing, act)


def failure(act: Do) -> str:
    """What becomes of a round in whose process this happens."""
    with closing_side(FreshProcess(SCENARIO, "cpu", change(act))) as process:
        with pytest.raises(ScenarioError) as caught:
            process.place()
        with pytest.raises(ScenarioError):
            process.round()  # So is every request after it.
    assert caught.value.outcome is Outcome.BROKEN
    return caught.value.reason


@pytest.mark.parametrize(
    ("method", "shares_core"),
    [
        ("forkserver", True),
        ("forkserver", False),
        pytest.param("spawn", False, marks=pytest.mark.long),
    ],
)
def test_a_sample_brings_the_rounds_of_another_process(
    method: str, shares_core: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if method == "spawn":
        monkeypatch.setattr(sys, "platform", "darwin")
    elif sys.platform != "linux":
        pytest.skip("processes are forked on Linux only")
    assert process_context("cpu").get_start_method() == method
    device = FakeDevice(name="cpu", shares_core=shares_core)
    timing = in_fresh_process(device, change(work))(SCENARIO, PLAN)
    more = 0 if shares_core else 1
    for group in timing.groups:
        assert len(group.reference_s) == len(group.candidate_s) + more
    assert len(timing.groups) == PLAN.groups
    assert len(timing.wall_s) == PLAN.rounds
    assert math.isfinite(timing.sample.log_ratio)
    assert 0 < timing.evidence.cpu_share <= 1


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="a core cannot be shared here")
def test_where_both_share_a_core_each_sample_is_taken_by_a_process_of_its_own() -> None:
    """What this one has done before would be part of the first sample, and of no baseline."""
    device = FakeDevice(name="cpu", shares_core=True)
    reasons = set()
    for sampler in (in_fresh_process, beside_its_reference):
        with pytest.raises(ScenarioError, match="raised RuntimeError: pid ") as caught:
            sampler(device, change(tell_where))(SCENARIO, PLAN)
        reasons.add(caught.value.reason)
    assert len(reasons) == 2
    assert f"raised RuntimeError: pid {os.getpid()}" not in reasons


def test_the_server_of_processes_gets_ready_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[bool] = []
    monkeypatch.setattr(forkserver, "ensure_running", lambda: begun.append(True))
    # No process is forked where CUDA may be initialised.
    assert process_context("cuda").get_start_method() == "spawn"
    prepare_processes("cuda")
    assert begun == []
    prepare_processes("cpu")
    assert begun == [True] * (sys.platform == "linux")


def test_a_process_makes_one_call_at_a_time_or_one_after_the_other_until_it_is_stopped() -> None:
    with closing_side(FreshProcess(SCENARIO, "cpu", change(work))) as process:
        process.place()
        rounds = [process.round(), process.round()]
        for _ in range(2):
            process.start_calls()
            time.sleep(0.2)
            calls = process.stop_calls()
            assert len(calls) > 1
            assert all(before.ended_s <= after.started_s for before, after in pairwise(calls))
        assert min(done.judged_s for done in [*rounds, *calls]) > 0
        assert 0 <= process.evidence().cpu_share <= 1


def test_closing_ends_the_process_whatever_it_does_and_may_be_done_twice() -> None:
    process = FreshProcess(SCENARIO, "cpu", change(hang))
    process.close()
    process.close()
    assert not process._process.is_alive()
    assert not process._output.parent.exists()


def test_one_that_cannot_be_started_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: list[Connection] = []

    class Full:
        """A machine that has no room for a process."""

        def Pipe(self) -> tuple[Connection, Connection]:  # noqa: N802
            ends.extend(multiprocessing.Pipe())
            return ends[0], ends[1]

        def Process(self, **_: object) -> Full:  # noqa: N802
            return self

        def start(self) -> None:
            assert list(tmp_path.iterdir())
            raise OSError("Resource temporarily unavailable")

    monkeypatch.setattr(fresh_process, "process_context", lambda device: Full())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(OSError, match="temporarily unavailable"):
        FreshProcess(SCENARIO, "cpu")
    assert [end.closed for end in ends] == [True, True]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (die_by_signal, "its process ended with SIGSEGV: no message"),
        (leave, "its process ended with code 3: the last line"),
        (fail, "raised ZeroDivisionError: injected"),
        (hang, "its process took more than 3 s"),
    ],
)
def test_a_process_that_fails_is_a_sentence(
    act: Do, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if act is hang:
        monkeypatch.setattr(fresh_process, "RESPONSE_LIMIT_S", 3.0)
    assert failure(act) == reason


def test_a_scenario_that_the_other_process_does_not_know_is_a_sentence() -> None:
    strange = replace(SCENARIO, technique=replace(SCENARIO.technique, id="strange"))
    with (
        closing_side(FreshProcess(strange, "cpu")) as process,
        pytest.raises(ScenarioError, match="Technique 'strange' is unknown; known: fp32"),
    ):
        process.place()


def test_an_output_without_a_line_has_a_last_line_too(tmp_path: Path) -> None:
    assert fresh_process.last_line(tmp_path / "none") == "no message"
    (tmp_path / "empty").write_text("\n \n", encoding="utf-8")
    assert fresh_process.last_line(tmp_path / "empty") == "no message"
