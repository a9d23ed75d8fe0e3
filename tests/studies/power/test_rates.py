"""Rules that decide where they should, and rates that claim what their processes can show."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from fixtures.commands.refresh import SAMPLES
from fixtures.measuring.repetition import SCENARIO_S
from fixtures.settings import Settings
from fixtures.studies.power.__main__ import main
from fixtures.studies.power.collect import CYCLE
from fixtures.studies.power.markdown import markdown
from fixtures.studies.power.rates import LEAST, RATES, rated
from fixtures.studies.power.replay import EVERY, TooFewError, clopper_pearson, replay, run_fails
from fixtures.studies.power.rules import Decision, rules
from fixtures.studies.power.samples import LabelledSample, read
from fixtures.verdicts.statistics import MAX_SAMPLES
from tests.studies.power.known import known, noisy, slower_by
from tests.studies.power.test_samples import gathered

RULES = rules(SAMPLES, MAX_SAMPLES)
SUITE, MEDIAN, STUDENT, FIXED = RULES
EQUAL = [known(1.0) for _ in range(40)]


def test_the_rules_are_the_suite_s_own_and_those_of_other_tools() -> None:
    assert SUITE == "this suite"
    assert MEDIAN.startswith("pytest-benchmark")
    assert STUDENT.startswith("pyperf")
    assert FIXED.startswith("fixed limit")


@pytest.mark.parametrize("name", RULES)
def test_no_rule_calls_equal_times_a_regression(name: str) -> None:
    tally = replay(RULES[name], EQUAL, EQUAL, draws=50)
    assert tally.regression.estimate == 0
    assert tally.undecided.estimate == 0
    assert tally.processes == 40


@pytest.mark.parametrize("name", RULES)
def test_no_rule_calls_half_the_time_a_regression(name: str) -> None:
    faster = [slower_by(-0.5) for _ in range(20)]
    assert replay(RULES[name], EQUAL, faster, draws=20).regression.estimate == 0


@pytest.mark.parametrize("name", RULES)
def test_every_rule_calls_twice_the_time_a_regression(name: str) -> None:
    tally = replay(RULES[name], EQUAL, [slower_by(1.0) for _ in range(40)], draws=50)
    assert tally.regression.estimate == 1
    assert tally.processes == 80


@pytest.mark.parametrize(
    ("name", "passes", "fails"),
    [(SUITE, 0.06, 0.09), (MEDIAN, 0.049, 0.051), (STUDENT, 0.001, 0.02), (FIXED, 0.099, 0.101)],
)
def test_each_rule_draws_its_own_line(name: str, passes: float, fails: float) -> None:
    for share, rate in ((passes, 0), (fails, 1)):
        slower = [slower_by(share) for _ in range(20)]
        assert replay(RULES[name], EQUAL, slower, draws=20).regression.estimate == rate, share


def test_the_suite_is_judged_by_its_own_code_and_the_others_fall_for_noise() -> None:
    calm = noisy(40, 0.0, 0.01, seed=1)
    rate = {
        name: replay(rule, calm, calm, draws=100).regression.estimate
        for name, rule in RULES.items()
    }
    assert rate[SUITE] <= 0.02
    assert rate[MEDIAN] > 0.2
    assert rate[STUDENT] > 0.1
    assert rate[FIXED] > 0.2


def test_a_rate_claims_no_more_than_its_processes_can_show() -> None:
    before = [known(1.0) for _ in range(20)]
    tally = replay(RULES[SUITE], before, before, draws=50)
    never = tally.regression
    assert (tally.judged, tally.independent) == (20, 20 - SAMPLES)
    assert (never.estimate, never.low) == (0, 0)
    assert never.high == pytest.approx(1 - 0.05 ** (1 / (20 - SAMPLES)))
    slower = [slower_by(1.0) for _ in range(20)]
    tally = replay(RULES[SUITE], before, slower, draws=50)
    always = tally.regression
    assert (tally.processes, tally.judged, tally.independent) == (40, 20, 20)
    assert (always.estimate, always.high) == (1, 1)
    assert always.low == pytest.approx(0.05 ** (1 / 20))


def test_decisions_that_take_more_samples_are_fewer() -> None:
    before = noisy(40, 0.0, 0.01, seed=1)
    tally = replay(RULES[SUITE], before, noisy(40, 0.055, 0.01, seed=2), draws=50)
    assert tally.mean_samples > 1.5
    assert tally.independent == int(40 / tally.mean_samples)
    assert tally.regression.low < 0.05 ** (1 / 40)


@pytest.mark.parametrize(
    ("found", "of", "low", "high"),
    [
        (0, 10, 0.0, 0.2589),
        (10, 10, 0.7411, 1.0),
        (5, 10, 0.1871, 0.8129),
        (1, 200, 0.0001, 0.0275),
    ],
)
def test_the_interval_is_that_of_clopper_and_pearson(
    found: int, of: int, low: float, high: float
) -> None:
    assert clopper_pearson(found, of) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize(("found", "of"), [(-1, 10), (11, 10), (0, 0)])
def test_what_is_no_rate_has_no_interval(found: int, of: int) -> None:
    with pytest.raises(ValueError, match="is no rate"):
        clopper_pearson(found, of)


def test_a_run_fails_if_one_of_its_scenarios_does() -> None:
    before = [known(1.0) for _ in range(40)]
    half = [*(slower_by(1.0) for _ in range(20)), *(known(1.0) for _ in range(20))]
    # One sample decides: either it is twice as slow or it is not.
    rule = replace(RULES[SUITE], new=1)
    tally = replay(rule, before, half, draws=400)
    assert 0.3 < tally.regression.estimate < 0.7
    assert tally.run > 0.99
    assert replay(rule, before, before, draws=50).run == 0


def test_a_run_sees_nothing_that_its_budget_does_not_suffice_for() -> None:
    before = noisy(40, 0.0, 0.004, seed=1)
    slow = [replace(one, took_s=SCENARIO_S / 2.1) for one in noisy(40, 0.045, 0.004, seed=2)]
    tally = replay(RULES[SUITE], before, slow, draws=100)
    assert tally.mean_samples > 1
    none_left = Decision(True, False, samples=2, took_s=2 * Settings().budget_s + 2)
    at_once = Decision(True, False, samples=1, took_s=2 * Settings().budget_s)
    assert not run_fails([none_left], random.Random(0))
    assert run_fails([at_once], random.Random(0))


def test_samples_that_run_out_leave_it_undecided() -> None:
    before = [known(ratio) for ratio in (0.94, 1.06) * (SAMPLES // 2)]
    decision = RULES[SUITE].decide(before, [known(ratio) for ratio in (1.10, 0.94)])
    assert (decision.undecided, decision.samples, decision.took_s) == (True, 2, 20.0)


def test_time_that_runs_out_leaves_it_undecided() -> None:
    before = [known(ratio) for ratio in (0.94, 1.06) * (SAMPLES // 2)]
    slow = [known(ratio, took_s=SCENARIO_S / 2.5) for ratio in (1.10, 0.94) * 6]
    decision = RULES[SUITE].decide(before, slow)
    assert (decision.undecided, decision.samples) == (True, 2)


def test_a_decision_takes_no_more_samples_than_it_needs() -> None:
    decision = RULES[SUITE].decide(EQUAL[:SAMPLES], EQUAL[SAMPLES:])
    assert (decision.regression, decision.undecided, decision.samples) == (False, False, 1)


def test_a_decision_takes_neighbours_and_a_baseline_from_all_over_the_others() -> None:
    seen: list[tuple[list[float], list[float]]] = []

    def decide(baseline: Sequence[LabelledSample], new: Sequence[LabelledSample]) -> Decision:
        seen.append(([one.took_s for one in baseline], [one.took_s for one in new]))
        return Decision(False, False, samples=1, took_s=1.0)

    rule = replace(RULES[SUITE], decide=decide)
    before = [known(1.0, took_s=number) for number in range(100)]
    after = [known(1.0, took_s=number) for number in range(200, 250)]
    for new in (before, after):
        seen.clear()
        replay(rule, before, new, draws=50)
        first = new[0].took_s
        for baseline, judged in seen[:50]:
            assert len(judged) == MAX_SAMPLES
            places = [(number - first) % len(new) for number in judged]
            gaps = {(b - a) % len(new) for a, b in pairwise(places)}
            assert gaps == {1}
            assert len({*baseline, *judged}) == SAMPLES + MAX_SAMPLES
            apart = [(b - a) % 100 for a, b in pairwise(baseline)]
            assert all(EVERY <= gap <= EVERY + MAX_SAMPLES for gap in apart)
        assert len({tuple(judged) for _, judged in seen[:50]}) > 10


def test_an_hour_in_which_the_machine_was_slower_widens_the_interval() -> None:
    def decide(_: Sequence[LabelledSample], new: Sequence[LabelledSample]) -> Decision:
        return Decision(new[0].took_s > 1, False, samples=1, took_s=1.0)

    rule = replace(RULES[SUITE], decide=decide)
    calm, slow = [known(1.0, took_s=1.0)] * 2, known(1.0, took_s=2.0)
    mixed, together = [*calm, slow] * 20, [*calm * 20, *[slow] * 20]
    rates = [replay(rule, EQUAL, new, draws=200).regression for new in (mixed, together)]
    assert [rate.estimate for rate in rates] == pytest.approx([1 / 3] * 2, abs=0.1)
    widths = [rate.high - rate.low for rate in rates]
    assert widths[1] > 1.5 * widths[0]


def test_a_process_is_never_compared_with_itself() -> None:
    few = [known(1.0) for _ in range(SAMPLES)]
    with pytest.raises(ValueError, match="too few for a baseline"):
        replay(RULES[SUITE], few, few, draws=1)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stored") / "samples.jsonl"
    gathered(path, 2 * CYCLE)
    return path


def test_the_tables_and_the_file_say_what_was_replayed(
    stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    assert main(["replay", str(stored), "--draws", "2", "--perf-report", str(folder)]) == 0
    samples = read([stored])
    rates = RATES.read(folder / "power.json")
    assert capsys.readouterr().out == markdown(rates) + "\n"
    assert rates.header == samples.header
    assert rates.samples == len(samples.samples)
    assert {rate.tally.rule for rate in rates.rates} == set(RULES)
    assert {rate.baseline_loaded for rate in rates.rates} == {False, True}
    often = {level for level in samples.levels() if len(samples.at(level)) >= LEAST}
    assert {rate.level for rate in rates.rates} == often
    others = {rate.level.where for rate in rates.rates if rate.tally.rule != SUITE}
    assert others == {"", "call"}
    for rate in rates.rates:
        assert rate.call_slower == pytest.approx(rate.level.share)


def test_too_few_samples_are_not_rated(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    gathered(path, 3)
    assert rated(read([path]), 5) == []


@pytest.mark.parametrize("processes", range(2, 12))
def test_a_resample_of_one_process_alone_is_drawn_again(processes: int) -> None:
    rule = rules(3, 12)["pytest-benchmark median:5%"]
    few = [known(1.0) for _ in range(processes)]
    assert replay(rule, few, few, draws=20).processes == processes
    with pytest.raises(TooFewError, match="0 processes are too few"):
        replay(rule, few[:1], few[:1], draws=20)


def test_a_folder_that_cannot_be_made_is_blamed_on_the_option_that_named_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "samples.jsonl"
    gathered(path, 2)
    assert main(["replay", str(path), "--perf-report", str(path / "out")]) == 2
    assert capsys.readouterr().err.startswith("power: --perf-report ")
