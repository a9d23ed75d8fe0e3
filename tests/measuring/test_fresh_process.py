"""A scenario in a fresh process: what it brings back, and what becomes of it when it dies."""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import cast

import psutil
import pytest

from fixtures.measuring import fresh_process
from fixtures.measuring.fresh_process import Change, FreshProcess, FreshReference, process_context
from fixtures.measuring.rounds import Plan
from fixtures.measuring.sampler import (
    Sampler,
    beside_its_reference,
    in_fresh_process,
    left,
    pair_of,
)
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.scenarios import Scenario, find_scenario
from tests.support.fake_device import FakeDevice
from tests.support.fake_scenarios import fake_scenario

SCENARIO = find_scenario("storybook", "sdpa")
PLAN = Plan(groups=2, pairs=1)
CPU = FakeDevice(name="cpu", shares_core=hasattr(os, "sched_setaffinity"))
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
    """Take some CPU time, since a round of none is impossible."""
    sum(range(100_000))


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


def failure(act: Do) -> ScenarioError:
    """What becomes of a sample in whose process this happens."""
    with pytest.raises(ScenarioError) as caught:
        in_fresh_process(CPU, change(act))(SCENARIO, PLAN)
    assert caught.value.outcome is Outcome.BROKEN
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("method", "shares_core"), [("forkserver", True), ("forkserver", False), ("spawn", False)]
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
    timing = in_fresh_process(device)(SCENARIO, PLAN)
    more = 0 if shares_core else 1
    for group in timing.groups:
        assert len(group.reference_s) == len(group.candidate_s) + more
    assert len(timing.groups) == PLAN.groups
    assert len(timing.wall_s) == PLAN.rounds
    assert math.isfinite(timing.sample.log_ratio)
    assert 0 < timing.evidence.cpu_share <= 1


@pytest.mark.skipif(not CPU.shares_core, reason="processes are bound to a core on Linux only")
@pytest.mark.parametrize("sampler", [in_fresh_process, beside_its_reference])
def test_where_both_share_a_core_no_sample_is_taken_by_the_process_that_runs_the_tests(
    sampler: Callable[..., Sampler],
) -> None:
    """What it has done before would be part of the first sample, and of no baseline."""
    with pytest.raises(ScenarioError, match="ended with code 3: the last line"):
        sampler(CPU, change(leave))(SCENARIO, PLAN)
    reference, candidate = pair_of(SCENARIO, CPU)
    with left(cast(FreshProcess, reference)), left(cast(FreshProcess, candidate)):
        assert isinstance(candidate, FreshProcess)
        assert isinstance(reference, FreshReference)
        assert len({os.getpid(), candidate.pid, reference.pid}) == 3


def test_no_process_is_forked_where_cuda_may_be_initialised() -> None:
    assert process_context("cuda").get_start_method() == "spawn"


def test_every_sample_has_a_process_of_its_own() -> None:
    reasons = {failure(tell_where).reason for _ in range(2)}
    assert len(reasons) == 2
    assert f"raised RuntimeError: pid {os.getpid()}" not in reasons


def test_a_process_can_be_asked_for_one_round_at_a_time() -> None:
    with left(FreshProcess(SCENARIO, "cpu", change(work))) as process:
        process.place()
        one, other = process.round(), process.round()
        process.place()
        evidence = process.evidence()
    assert min(one.judged_s, other.judged_s, one.wall_s, other.wall_s) > 0
    assert 0 <= evidence.cpu_share <= 1


def test_what_fails_in_a_round_is_a_sentence_and_so_is_every_request_after_it() -> None:
    with left(FreshProcess(SCENARIO, "cpu", change(fail))) as process:
        for _ in range(2):
            with pytest.raises(ScenarioError) as caught:
                process.place()
            assert caught.value.outcome is Outcome.BROKEN


@pytest.mark.skipif(not CPU.shares_core, reason="processes cannot be kept on one core here")
def test_a_reference_runs_on_the_scenario_s_core_until_it_is_stopped() -> None:
    before = psutil.Process().cpu_affinity()
    with left(FreshReference(SCENARIO, "cpu")) as reference:
        reference.place()
        for _ in range(2):
            reference.start()
            both = [psutil.Process(pid).cpu_affinity() for pid in (None, reference.pid)]
            time.sleep(1.0)
            calls = reference.stop()
            assert len(both[0]) == 1
            assert both[0] == both[1]
            assert all(one.judged_s > 0 for one in calls)
            assert all(a.ended_s <= b.started_s for a, b in pairwise(calls))
            assert psutil.Process().cpu_affinity() == before
        reference.start()
    assert psutil.Process().cpu_affinity() == before


def test_closing_ends_the_process_whatever_it_does_and_may_be_done_twice() -> None:
    process = FreshProcess(SCENARIO, "cpu", change(hang))
    process.close()
    process.close()
    assert not process._process.is_alive()
    assert not process._output.parent.exists()


def test_a_crash_is_a_sentence_that_names_the_signal() -> None:
    assert failure(die_by_signal).reason.startswith("its process ended with SIGSEGV: ")


def test_an_exit_is_a_sentence_with_the_last_line() -> None:
    assert str(failure(leave)) == ("storybook-sdpa: its process ended with code 3: the last line")


def test_an_exception_is_a_sentence() -> None:
    assert failure(fail).reason == "raised ZeroDivisionError: injected"


def test_a_process_that_hangs_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh_process, "RESPONSE_LIMIT_S", 5.0)
    started_s = time.monotonic()
    assert str(failure(hang)) == "storybook-sdpa: its process took more than 5 s"
    assert time.monotonic() - started_s < 60


def test_a_scenario_that_the_other_process_does_not_know_is_a_sentence() -> None:
    strange = replace(SCENARIO, technique=replace(SCENARIO.technique, id="strange"))
    with pytest.raises(ScenarioError, match="Technique 'strange' is unknown; known are"):
        in_fresh_process(CPU)(strange, PLAN)


@pytest.mark.skipif(not CPU.shares_core, reason="processes cannot be kept on one core here")
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_that_is_gone_says_why_whenever_it_went(when: str) -> None:
    with left(FreshProcess(SCENARIO, "cpu", change(leave))) as gone:
        assert gone.pid is not None

        def end() -> None:
            with pytest.raises(ScenarioError, match="ended with code 3: the last line"):
                gone.place()

        if when == "before":
            end()
        with left(FreshReference(SCENARIO, "cpu", gone.pid)) as reference:
            if when == "after":
                end()
            reference.place()
            reference.start()
            assert reference.stop() is not None
        with pytest.raises(ScenarioError, match="ended with code 3: the last line"):
            gone.round()


def test_an_output_without_a_line_has_a_last_line_too(tmp_path: Path) -> None:
    assert fresh_process.last_line(tmp_path / "none") == "no message"
    (tmp_path / "empty").write_text("\n \n", encoding="utf-8")
    assert fresh_process.last_line(tmp_path / "empty") == "no message"
