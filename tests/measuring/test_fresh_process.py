"""A look in a fresh process: what it brings back, and what becomes of it when it dies."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from fixtures import worker
from fixtures.measurement import ScenarioError
from fixtures.rounds import Plan
from fixtures.scenarios import Scenario, scenarios
from fixtures.verdicts import Outcome
from fixtures.worker import look_in_fresh_process, timing_from_json, timing_to_json

SCENARIO = next(one for one in scenarios(["storybook"]) if one.technique.id == "sdpa")
PLAN = Plan(groups=2, pairs=1)


def with_apply(apply: Callable[[], Any], scenario: Scenario) -> Scenario:
    """The scenario, doing something else in the other process."""

    def other(workload: Any, device: Any) -> Iterator[Any]:
        yield apply()

    return replace(scenario, technique=replace(scenario.technique, apply=other))


def die_by_signal() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def leave() -> None:
    os.write(2, b"first\nthe last thing it said\n")
    os._exit(3)


def fail() -> None:
    raise ZeroDivisionError("injected")


def hang() -> None:
    time.sleep(600)


def look(apply: Callable[[], Any]) -> ScenarioError:
    with pytest.raises(ScenarioError) as caught:
        look_in_fresh_process(SCENARIO, "cpu", PLAN, partial(with_apply, apply))
    assert caught.value.outcome is Outcome.BROKEN
    return caught.value


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_a_look_brings_the_rounds_of_another_process(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if method == "spawn":
        monkeypatch.setattr(worker.sys, "platform", "darwin")
    elif worker.sys.platform != "linux":
        pytest.skip("looks are forked on Linux only")
    assert worker.process_context("cpu").get_start_method() == method
    timing = look_in_fresh_process(SCENARIO, "cpu", PLAN)
    assert len(timing.groups) == PLAN.groups
    assert len(timing.wall_s) == PLAN.rounds
    assert math.isfinite(timing.look.log_ratio)
    assert timing_from_json(timing_to_json(timing)) == timing


def test_no_process_is_forked_where_cuda_may_be_initialised() -> None:
    assert worker.process_context("cuda").get_start_method() == "spawn"


def test_a_crash_is_a_sentence_that_names_the_signal() -> None:
    assert str(look(die_by_signal)).startswith("storybook-sdpa: a look ended with SIGSEGV: ")


def test_an_exit_is_a_sentence_with_the_last_words() -> None:
    assert str(look(leave)) == ("storybook-sdpa: a look ended with code 3: the last thing it said")


def test_an_exception_is_a_sentence() -> None:
    assert "raised ZeroDivisionError: injected" in str(look(fail))


def test_a_look_that_hangs_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "LOOK_LIMIT_S", 5.0)
    started_s = time.monotonic()
    assert str(look(hang)) == "storybook-sdpa: a look took more than 5 s"
    assert time.monotonic() - started_s < 60


def test_a_scenario_that_the_other_process_does_not_know_is_a_sentence() -> None:
    strange = replace(SCENARIO, technique=replace(SCENARIO.technique, id="strange"))
    with pytest.raises(ScenarioError, match="KeyError: 'storybook-strange'"):
        look_in_fresh_process(strange, "cpu", PLAN)
