"""What every judge says: which entry, which suspects, and what can be done."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fixtures.metrics.case import Case
from fixtures.metrics.counts import COUNTS
from fixtures.metrics.latency_verdicts import LATENCY, RATIO, judge_ratio, judge_time
from fixtures.records.counts import Counts
from fixtures.records.outcome import Outcome, Verdict
from tests.metrics.cases import ELSEWHERE, SCENARIO, case, judged_peak, side_case
from tests.support.counting import counts
from tests.support.runs import MIB, SOFTWARE, entry, latency, sample, scenario_record, timing


def counts_judged(on: Case, products: int) -> Verdict:
    record = scenario_record("fp16", counts=counts(mm=products, add=400))
    [verdict] = COUNTS.judge(on, record)
    return verdict


PEAKS = {"whole": 600 * MIB, "denoiser": 500 * MIB}
WORSE: dict[str, tuple[Callable[[Case], Verdict], list[str]]] = {
    "ratio": (
        lambda on: judge_ratio(on, [sample(1.5)]),
        ["x1.500", "+50.0 %", "x1.020", "1 process)"],
    ),
    "memory": (
        lambda on: judged_peak(on, PEAKS),
        ["600.00 MiB", "+17.2 %", "512.00 MiB", "520.00 MiB"],
    ),
    "counts": (lambda on: counts_judged(on, 1001), ["mm +1", "operations 1,400 -> 1,401"]),
    "time": (
        lambda on: judge_time(on, [timing(judged_ms=250.0)] * 12),
        ["250 ms", "+150.0 %", "102 ms", "12 processes)"],
    ),
}
"""Everything that needs an entry: one judgement that fails, and the figures in its sentence."""


@pytest.mark.parametrize("name", WORSE)
def test_a_failure_has_scenario_figures_limit_suspects_and_the_command(name: str) -> None:
    judge, figures = WORSE[name]
    verdict = judge(case())
    assert verdict.outcome is Outcome.REGRESSION
    for figure in figures:
        assert figure in verdict.sentence
    assert verdict.sentence.startswith(f"{SCENARIO}: ")
    assert "changed since the baseline: torch 2.12.0 -> 2.13.0" in verdict.sentence
    assert f'accept it with: nox -s refresh -- -k "[{SCENARIO}]" --perf-reason' in verdict.sentence
    assert "\n" not in verdict.sentence


@pytest.mark.parametrize("name", WORSE)
def test_without_an_entry_the_sentence_says_how_to_record_one(name: str) -> None:
    judge, _ = WORSE[name]
    verdict = judge(case(entry=None))
    assert verdict.outcome is Outcome.NO_BASELINE
    assert f'nox -s refresh -- -k "[{SCENARIO}]"' in verdict.sentence
    assert "changed since" not in verdict.sentence


@pytest.mark.parametrize("name", WORSE)
def test_an_entry_without_the_figures_is_no_baseline_for_them(name: str) -> None:
    judge, _ = WORSE[name]
    bare = entry(component_peak_bytes={}, counts=Counts(), latency=())
    verdict = judge(case(entry=bare))
    assert verdict.outcome in (Outcome.NO_BASELINE, Outcome.NOT_JUDGED)
    assert "nox -s refresh" in verdict.sentence


@pytest.mark.parametrize("name", WORSE)
def test_on_a_device_that_nobody_knows_nothing_that_needs_an_entry_is_judged(name: str) -> None:
    judge, _ = WORSE[name]
    unknown = case(entry=None, device_is_known=False, options="--perf-device cuda")
    verdict = judge(unknown)
    assert verdict.outcome is Outcome.NOT_JUDGED
    command = 'nox -s refresh -- --perf-device cuda --perf-reason "WHY"'
    assert str(verdict.reason) == f"nothing recorded here yet; record it with: {command}"
    assert verdict.detail == "nothing recorded here yet"
    assert verdict.sentence.startswith(f"{SCENARIO}: {verdict.metric} is not judged: nothing ")
    assert not verdict.outcome.fails(strict=True)


def test_a_table_has_room_for_the_figure_and_its_limit() -> None:
    assert judged_peak(case(), PEAKS).detail == "whole 600.00 MiB (limit 520.00 MiB)"
    assert case().verdict(RATIO, Outcome.REGRESSION, "x", (1.2, 1.0, 1.02)).detail == (
        "x1.200 (limit x1.020)"
    )
    assert case().verdict(RATIO, Outcome.PASS, "x").detail == ""


def test_the_command_refreshes_where_and_with_which_options_the_run_itself_ran() -> None:
    here = case(command="python -m pytest --perf-update-baselines", options="--perf-device x")
    sentence = judge_time(here, [timing(judged_ms=250.0)] * 12).sentence
    command = f'{here.command} --perf-device x -k "[{SCENARIO}]" --perf-reason "WHY"'
    assert sentence.endswith(f"accept it with: {command}")


def test_suspects_are_every_package_that_changed_of_a_latency_since_it_was_sampled() -> None:
    older = latency(software={**SOFTWARE, "torch": "2.11.0"})
    elsewhere = latency(hardware=ELSEWHERE)
    on = case(entry=entry(latency=(older, elsewhere)))
    assert on.suspects(RATIO) == ("torch 2.11.0 -> 2.13.0",)
    assert on.suspects(LATENCY) == on.suspects(RATIO)
    assert on.suspects(COUNTS.quantity) == ("torch 2.12.0 -> 2.13.0",)
    assert case(software=SOFTWARE).suspects(COUNTS.quantity) == ()


def test_a_comparison_calls_its_entry_base_and_accepts_and_renews_nothing() -> None:
    side = side_case()
    assert "against base's 512.00 MiB" in judged_peak(side, PEAKS).sentence
    for outcome in Outcome:
        assert side.verdict(COUNTS.quantity, outcome, "2").sentence == f"{SCENARIO}: 2"
