"""The host's work: what fails, what is only shown, and which functions are named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.metrics.host_calls import (
    HOST_CALLS_A_STEP,
    HOST_SHARE,
    functions_changed,
    host_changes,
    judge_host_calls,
)
from fixtures.records.host_work import EMPTY_CACHE, PINNED_BYTES, Calls, HostCalls, HostWork
from fixtures.records.outcome import Outcome
from tests.metrics.cases import case
from tests.support.runs import entry, host_work, with_functions

STORED = host_work(a_step=600, torch_a_step=5000, once=300)
"""Three steps; 2 % of a step of the libraries is 12, of torch 100."""


def judged(now: HostWork, stored: HostWork = STORED, **changes: Any) -> Any:
    return judge_host_calls(case(entry=entry(host_work=stored), **changes), now)


@pytest.mark.parametrize(
    ("now", "outcome"),
    [
        (STORED, Outcome.PASS),
        (host_work(a_step=612, torch_a_step=5000, once=300), Outcome.PASS),
        (host_work(a_step=613, torch_a_step=5000, once=300), Outcome.REGRESSION),
        (host_work(a_step=588, torch_a_step=5000, once=300), Outcome.PASS),
        (host_work(a_step=587, torch_a_step=5000, once=300), Outcome.IMPROVEMENT),
        (host_work(a_step=600, torch_a_step=5100, once=300), Outcome.PASS),
        (host_work(a_step=600, torch_a_step=5101, once=300), Outcome.REGRESSION),
        (host_work(a_step=600, torch_a_step=4899, once=300), Outcome.IMPROVEMENT),
        # In all 2,100: 2 % of it is 42, ten a step are 30.
        (host_work(a_step=600, torch_a_step=5000, once=342), Outcome.PASS),
        (host_work(a_step=600, torch_a_step=5000, once=343), Outcome.REGRESSION),
        # One worse and one better is worse.
        (host_work(a_step=700, torch_a_step=4000, once=300), Outcome.REGRESSION),
    ],
)
def test_a_change_beyond_its_limit_is_a_verdict(now: HostWork, outcome: Outcome) -> None:
    assert judged(now).outcome is outcome


def test_ten_calls_a_step_are_allowed_where_two_percent_are_fewer() -> None:
    few = host_work(a_step=100, torch_a_step=0, once=0)
    assert judged(host_work(a_step=110, torch_a_step=0, once=0), few).outcome is Outcome.PASS
    assert judged(host_work(a_step=111, torch_a_step=0, once=0), few).outcome is Outcome.REGRESSION


def test_the_standard_library_is_judged_only_where_it_was_counted() -> None:
    def standard(count: int) -> HostWork:
        step = replace(STORED.step, packages={"diffusers": Calls(600, 0, standard=count)})
        return replace(STORED, step=step)

    assert judged(standard(1000), standard(900)).outcome is Outcome.REGRESSION
    assert judged(standard(1000), standard(0)).outcome is Outcome.PASS


def test_code_may_move_from_one_library_to_another() -> None:
    moved = {"diffusers": Calls(100, 200), "accelerate": Calls(200, 100)}
    step = replace(STORED.step, packages={**STORED.step.packages, **moved})
    assert judged(replace(STORED, step=step)).outcome is Outcome.PASS


def test_a_change_within_its_limit_is_shown() -> None:
    verdict = judged(host_work(a_step=603, torch_a_step=5000, once=300))
    assert "within their limits: host calls 600 -> 603 (+3 a step)" in verdict.sentence
    assert (verdict.measured, verdict.baseline) == (603, 600)


def test_a_failure_names_up_to_three_functions_largest_first() -> None:
    functions = {"diffusers/a.py:f": 1, "diffusers/b.py:g": 100, "diffusers/c.py:h": 0}
    stored = with_functions(STORED, {"diffusers/a.py:f": 1, "diffusers/d.py:i": 50})
    now = with_functions(
        host_work(a_step=700, torch_a_step=5000, once=300),
        {**functions, "diffusers/e.py:j": 20, "diffusers/f.py:k": 10},
    )
    verdict = judged(now, stored)
    named = "diffusers/b.py:g +100 a step, diffusers/d.py:i -50 a step, diffusers/e.py:j +20 a step"
    assert verdict.sentence.startswith(
        "storybook-fp16: the host's work changed: host calls 600 -> 700 (+100 a step): " + named
    )
    assert verdict.detail == f"host calls 600 -> 700 (+100 a step): {named}"
    assert "f.py:k" not in verdict.sentence


def test_functions_outside_of_the_steps_are_named_by_their_share_of_the_call() -> None:
    once = with_functions(STORED, {}, {"transformers/a.py:f": 70})
    assert functions_changed(STORED, once) == "transformers/a.py:f +70 outside of the steps"
    assert functions_changed(STORED, STORED) == ""
    for more, first in ((20, "transformers/a.py:f"), (24, "diffusers/b.py:g")):
        both = with_functions(STORED, {"diffusers/b.py:g": more}, {"transformers/a.py:f": 70})
        named = functions_changed(STORED, both)
        assert named.startswith(f"{first} +")
        assert f"diffusers/b.py:g +{more} a step" in named
        assert "transformers/a.py:f +70 outside of the steps" in named


def test_a_function_is_named_once() -> None:
    more = with_functions(STORED, {"diffusers/b.py:g": 20}, {"diffusers/b.py:g": 70})
    named = "diffusers/b.py:g +20 a step and +70 outside of the steps"
    assert functions_changed(STORED, more) == named
    # Only in the first step, where it was in all three.
    each = with_functions(STORED, {"diffusers/b.py:g": 20})
    first = with_functions(STORED, {}, {"diffusers/b.py:g": 20})
    assert functions_changed(each, first) == "diffusers/b.py:g -20 a step"


@pytest.mark.parametrize(("now", "outcome"), [(4, Outcome.REGRESSION), (2, Outcome.IMPROVEMENT)])
def test_calls_of_the_runtime_are_held_exactly(now: int, outcome: Outcome) -> None:
    stored, changed = (with_runtime(STORED, {EMPTY_CACHE: count}) for count in (3, now))
    verdict = judged(changed, stored)
    assert verdict.outcome is outcome
    assert f"{EMPTY_CACHE} 3 -> {now} ({now - 3:+} a step)" in verdict.sentence
    assert judged(stored, stored).outcome is Outcome.PASS


def test_bytes_are_told_as_bytes() -> None:
    sentence = judged(with_runtime(STORED, {PINNED_BYTES: 2**20})).sentence
    assert f"{PINNED_BYTES} 0.00 MiB -> 1.00 MiB (+1.00 MiB a step)" in sentence


def test_what_the_steps_add_up_to_is_told_once() -> None:
    changes = host_changes(STORED, host_work(a_step=700, torch_a_step=5000, once=300))
    assert [(one.name, one.part) for one in changes] == [("host calls", "a step")]
    more = host_changes(STORED, host_work(a_step=700, torch_a_step=5000, once=400))
    assert [one.part for one in more] == ["a step", "in all"]


@given(before=st.integers(0, 10**6), now=st.integers(0, 10**6))
def test_the_limit_is_the_larger_of_share_and_ten_a_step(before: int, now: int) -> None:
    stored, changed = (host_work(a_step=one, torch_a_step=0, once=0) for one in (before, now))
    found = host_changes(stored, changed)
    limit = max(HOST_SHARE * before, HOST_CALLS_A_STEP)
    assert any(one.is_beyond for one in found) == (abs(now - before) > limit)


def test_nothing_is_judged_without_counts_of_the_same_python() -> None:
    verdict = judged(replace(STORED, python="3.12"))
    assert verdict.outcome is Outcome.NOT_JUDGED
    assert "the baseline was recorded on Python 3.11, this is 3.12" in verdict.sentence
    older = judged(STORED, HostWork())
    assert older.outcome is Outcome.NOT_JUDGED
    assert "recorded before it was counted; renew it with: nox -s refresh" in older.sentence


def test_no_entry_and_no_counts_fail() -> None:
    assert judge_host_calls(case(entry=None), STORED).outcome is Outcome.NO_BASELINE
    assert judged(HostWork()).outcome is Outcome.BROKEN


def with_runtime(work: HostWork, a_step: dict[str, int]) -> HostWork:
    in_all = {name: work.steps * count for name, count in a_step.items()}
    call: HostCalls = replace(work.call, runtime=in_all)
    return replace(work, step=replace(work.step, runtime=a_step), call=call)
