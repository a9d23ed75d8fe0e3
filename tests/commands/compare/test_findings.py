"""Differences with one cause are one finding, and every difference is in one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from fixtures.commands.compare.comparing import Compared
from fixtures.commands.compare.figures import figures_of, not_run
from fixtures.commands.compare.findings import findings_of
from fixtures.commands.compare.messages import Failure
from fixtures.commands.compare.table import MAX_FINDINGS, closing_line, render
from fixtures.metrics.latency_verdicts import LATENCY
from fixtures.records.counts import BYTES_MOVED, OPERATIONS, SYNCS, Counts
from fixtures.records.host_work import HostWork
from fixtures.records.outcome import Outcome
from fixtures.records.run import ScenarioRecord
from fixtures.report.findings import Finding
from fixtures.verdicts.case import SideCase
from fixtures.verdicts.compared import ComparedFigure, Sides
from fixtures.verdicts.limits import Limits
from tests.support.runs import (
    entry,
    host_work,
    run_record,
    scenario_record,
    verdict,
    with_functions,
)

STEPS = 3
CLONE = {"aten::clone in ResnetBlock2D": 6}
WALK = "diffusers/a.py:walk"
PLACE = "diffusers/schedulers/x.py:step (item)"
Side = tuple[Mapping[str, int], int, Mapping[str, int], HostWork]


def side(
    more: Mapping[str, int] | None = None,
    moved_bytes: int = 1000,
    places: Mapping[str, int] | None = None,
    work: HostWork | None = None,
) -> Side:
    """Operations beside 1,000 `mm` in Attention, bytes moved, waits by place, the host's work."""
    return more or {}, moved_bytes, places or {}, work or host_work()


def record(name: str, one: Side) -> ScenarioRecord:
    more, moved_bytes, places, work = one
    origins = {"aten::mm in Attention": 1000, **more}
    kinds: dict[str, int] = {}
    for origin, number in origins.items():
        kind = origin.partition(" in ")[0]
        kinds[kind] = kinds.get(kind, 0) + number
    totals = {
        OPERATIONS: sum(kinds.values()),
        BYTES_MOVED: moved_bytes,
        SYNCS: sum(places.values()),
    }
    return scenario_record(
        name,
        workload="sd15",
        origins=origins,
        counts=Counts(totals, kinds, sync_places=places),
        host_work=work,
    )


def compared(*sides: tuple[str, Side, Side], limits: Limits | None = None) -> Compared:
    """A comparison of these scenarios: the technique, base and head of each."""
    limits = limits or Limits(steps=STEPS)
    bases = [record(name, base) for name, base, _ in sides]
    heads = [record(name, head) for name, _, head in sides]
    figures: list[ComparedFigure] = []
    for base, head in zip(bases, heads, strict=True):
        case = SideCase(base.id, entry(counts=base.counts, origins=base.origins), {})
        figures += figures_of(Sides(case, base, head, limits), ("counts", "host_calls"))
    steps = dict.fromkeys((base.id for base in bases), STEPS)
    return Compared(run_record(*bases), run_record(*heads), figures, steps)


def found(*sides: tuple[str, Side, Side]) -> list[Finding]:
    return findings_of(compared(*sides))


def test_equal_sides_have_no_finding() -> None:
    assert found(("fp32", side(), side()), ("bf16", side(CLONE), side(CLONE))) == []


def test_one_cause_in_many_scenarios_is_one_finding() -> None:
    names = ("fp32", "fp16", "bf16", "sdpa", "autocast")
    [one] = found(*((name, side(), side(CLONE, 1020 + 10 * n)) for n, name in enumerate(names)))
    assert one.outcome is Outcome.REGRESSION
    assert one.cause == "clone +6 (+2 a step) in ResnetBlock2D"
    assert one.moved == "bytes moved +2.0 % to +6.0 %, operations +0.6 %"
    assert one.scenarios == tuple(f"sd15-{name}" for name in names)
    assert one.where == "sd15-fp32, sd15-fp16, sd15-bf16 and 2 more"
    assert one.bisect_metric == "bytes_moved"


def test_what_is_too_small_informs_and_does_not_fail() -> None:
    result = compared(("fp32", side(), side({"aten::clone in ResnetBlock2D": 5}, 1002)))
    [one] = findings_of(result)
    assert one.outcome is Outcome.PASS
    assert one.says == "within limits"
    assert not result.failed
    exact = compared(("fp32", side(), side(CLONE, 1002)), limits=Limits(exact=True, steps=STEPS))
    assert findings_of(exact)[0].outcome is Outcome.REGRESSION


def test_two_causes_are_two_findings() -> None:
    attention = {"aten::bmm in Attention": 30}
    first, second = found(
        ("fp32", side(), side({**CLONE, **attention})), ("bf16", side(), side(CLONE))
    )
    assert (first.outcome, first.scenarios) == (Outcome.REGRESSION, ("sd15-fp32",))
    assert first.cause == "bmm +30 (+10 a step) in Attention"
    assert (second.outcome, second.scenarios) == (Outcome.PASS, ("sd15-bf16",))
    assert second.cause.startswith("clone +6")


def test_a_wait_names_its_place_and_a_renamed_one_is_none() -> None:
    [wait] = found(("fp32", side(places={}), side(places={PLACE: STEPS})))
    assert wait.outcome is Outcome.REGRESSION
    assert wait.cause == f"{PLACE} +3 (+1 a step)"
    renamed = {PLACE.replace("step", "_step"): STEPS}
    assert found(("fp32", side(places={PLACE: STEPS}), side(places=renamed))) == []


@pytest.mark.parametrize(
    ("step", "once", "said"),
    [(100, 0, "+100 a step"), (0, 600, "+600 outside of the steps")],
)
def test_more_of_the_host_s_work_names_functions(step: int, once: int, said: str) -> None:
    before = with_functions(host_work(), {WALK: 40}, {WALK: 40})
    now = host_work(600 + step, once=300 + once)
    now = with_functions(now, {WALK: 40 + step}, {WALK: 40 + once})
    [one] = found(("fp32", side(work=before), side(work=now)))
    assert one.outcome is Outcome.REGRESSION
    assert one.cause == f"{WALK} {said}"


def test_what_is_done_in_every_step_and_what_is_done_once_are_two_findings() -> None:
    now = with_functions(host_work(620, once=2000), {WALK: 20}, {"diffusers/b.py:set_up": 1700})
    once, step = found(("fp32", side(work=host_work()), side(work=now)))
    assert (once.cause, once.moved) == (
        "diffusers/b.py:set_up +1,700 outside of the steps",
        "host calls (in all) +83.8 %",
    )
    assert (step.cause, step.moved) == (f"{WALK} +20 a step", "host calls (a step) +3.3 %")


def test_a_function_called_in_the_steps_here_and_outside_of_them_there_is_one_finding() -> None:
    before = with_functions(host_work(), {WALK: 40}, {WALK: 40})
    step = with_functions(host_work(700), {WALK: 140}, {WALK: 40})
    once = with_functions(host_work(once=900), {WALK: 40}, {WALK: 640})
    sides = [(side(work=before), side(work=one)) for one in (step, once)]
    [one] = found(("group_offload_leaf", *sides[0]), ("vae_tiling", *sides[1]))
    assert one.cause == f"{WALK} +100 a step, {WALK} +600 outside of the steps"
    assert one.scenarios == ("sd15-group_offload_leaf", "sd15-vae_tiling")


def test_what_failed_on_a_side_is_no_part_of_the_other_s_cause() -> None:
    two = {WALK: 30, "diffusers/b.py:hook": 20}
    result = compared(
        ("fp32", side(work=host_work()), side(work=with_functions(host_work(650), two))),
        ("bf16", side(work=with_functions(host_work(), {WALK: 5})), side(work=HostWork())),
    )
    failed = not_run("sd15-bf16", head=Failure(Outcome.BROKEN, "it does not work"))
    ran = [one for one in result.figures if one.verdict.scenario == "sd15-fp32"]
    found = findings_of(replace(result, figures=[*ran, failed]))
    assert [one.cause for one in found if one.cause] == [
        f"{WALK} +30 a step, diffusers/b.py:hook +20 a step"
    ]


def test_latencies_are_told_together_and_what_does_not_run_by_its_reason() -> None:
    base = compared(("fp32", side(), side()), ("bf16", side(), side()), ("sdpa", side(), side()))
    slower = [
        ComparedFigure(verdict(f"sd15-{name}", Outcome.REGRESSION, "latency"), LATENCY, 100, now)
        for name, now in (("fp32", 105.0), ("bf16", 110.0))
    ]
    crash = not_run("sd15-sdpa", head=Failure(Outcome.BROKEN, "it does not work"))
    broken, latency = findings_of(replace(base, figures=[*slower, crash]))
    assert broken.title == "runs on base, and on head: it does not work"
    assert (latency.cause, latency.moved) == ("", "latency +5.0 % to +10.0 %")
    assert latency.scenarios == ("sd15-fp32", "sd15-bf16")


def test_what_fails_comes_first_and_every_figure_is_in_a_finding() -> None:
    less = {"aten::clone in ResnetBlock2D": 60}
    result = compared(
        ("sdpa", side(), side({"aten::view in Attention": 2})),
        ("fp32", side(less), side()),
        ("bf16", side(), side({"aten::bmm in Attention": 300})),
    )
    outcomes = [one.outcome for one in findings_of(result)]
    assert outcomes == [Outcome.REGRESSION, Outcome.IMPROVEMENT, Outcome.PASS]
    assert closing_line(result) == (
        "3 scenarios compared: 3 findings, of which 1 failed, 1 improved, 0 inconclusive, "
        "1 within limits; 0 scenarios not compared"
    )


def test_the_screen_shows_ten_findings_and_the_table_on_request() -> None:
    sides = [
        (f"t{n}", side(), side({f"aten::view in Module{n}": 100 + n}))
        for n in range(MAX_FINDINGS + 2)
    ]
    result = compared(*sides)
    text = render(result, color=False)
    assert " 1. regression: view +111 (+37 a step) in Module11" in text
    assert f"{MAX_FINDINGS}. regression" in text
    assert f"{MAX_FINDINGS + 1}. " not in text
    assert "and 2 more; --table shows every figure" in text
    assert "base" not in text.split("not compared")[0].split("changed from base to head")[-1]
    assert "1,111" in render(result, color=False, table=True)


def test_a_leak_is_a_finding_of_its_own_whatever_operations_came_with_it() -> None:
    result = compared(("fp32", side(), side(CLONE, 1030)))
    [base], [head] = result.base.scenarios.values(), result.head.scenarios.values()
    leaking = replace(head, faults={"leak": "a call left 2.00 MiB allocated"})
    figures = figures_of(Sides(SideCase(base.id, entry(), {}), base, leaking), ("faults",))
    findings = findings_of(replace(result, figures=[*result.figures, *figures]))
    assert [finding.outcome for finding in findings if "leak" in finding.moved] == [Outcome.BROKEN]
    assert len(findings) == 2
