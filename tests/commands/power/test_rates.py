"""Rules that decide where they should, and rates that claim what their processes can show."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.commands.power.__main__ import main
from fixtures.commands.power.rates import RATES, RatedLevel, smallest_detected
from fixtures.commands.power.render import table
from fixtures.commands.power.replay import Rate, Tally, replay
from fixtures.commands.power.rules import rules
from fixtures.commands.power.samples import Level, read
from fixtures.commands.refresh import SAMPLES
from fixtures.measuring.repetition import SCENARIO_S
from fixtures.verdicts import MAX_SAMPLES
from tests.commands.power.known import known, noisy, slower_by
from tests.commands.power.test_samples import gathered

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
    [(SUITE, 0.019, 0.03), (MEDIAN, 0.049, 0.051), (STUDENT, 0.001, 0.02), (FIXED, 0.099, 0.101)],
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
    never = replay(RULES[SUITE], before, before, draws=50).regression
    assert (never.estimate, never.low) == (0, 0)
    assert never.high == pytest.approx(1 - 0.05 ** (1 / 20))
    slower = [slower_by(1.0) for _ in range(20)]
    always = replay(RULES[SUITE], before, slower, draws=50).regression
    assert (always.estimate, always.high) == (1, 1)
    assert always.low == pytest.approx(0.05 ** (1 / 40))


def test_samples_that_run_out_leave_it_undecided() -> None:
    before = [known(ratio) for ratio in (0.97, 1.03) * (SAMPLES // 2)]
    decision = RULES[SUITE].decide(before, [known(ratio) for ratio in (1.05, 0.97)])
    assert (decision.undecided, decision.samples, decision.took_s) == (True, 2, 20.0)


def test_time_that_runs_out_leaves_it_undecided() -> None:
    before = [known(ratio) for ratio in (0.97, 1.03) * (SAMPLES // 2)]
    slow = [known(ratio, took_s=SCENARIO_S / 2.5) for ratio in (1.05, 0.97) * 6]
    decision = RULES[SUITE].decide(before, slow)
    assert (decision.undecided, decision.samples) == (True, 2)


def test_a_decision_takes_no_more_samples_than_it_needs() -> None:
    decision = RULES[SUITE].decide(EQUAL[:SAMPLES], EQUAL[SAMPLES:])
    assert (decision.regression, decision.undecided, decision.samples) == (False, False, 1)


def test_a_process_is_never_compared_with_itself() -> None:
    few = [known(1.0) for _ in range(SAMPLES)]
    with pytest.raises(ValueError, match="too few for a baseline"):
        replay(RULES[SUITE], few, few, draws=1)


def test_the_table_and_the_files_say_what_was_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "samples.jsonl"
    gathered(path, 60)
    folder = tmp_path / "out"
    assert main(["replay", str(path), "--draws", "10", "--perf-report", str(folder)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("storybook-sdpa, 60 processes")
    assert "smallest slowdown detected in 95 %: 5 % (this suite, baseline as it is" in said
    assert "none of those tried (fixed limit of 10 %, baseline as it is" in said
    stored, found = RATES.read(folder / "power.json"), read([path])
    assert stored.header == found.header
    assert stored.smallest_detected == smallest_detected(stored.rates)
    assert {rate.tally.rule for rate in stored.rates} == set(RULES)
    assert {rate.level for rate in stored.rates} == set(found.levels())
    assert {rate.baseline_loaded for rate in stored.rates} == {False, True}
    assert table(found, stored.rates).row_count == len(stored.rates)
    assert (folder / "power.svg").read_bytes().startswith(b"<?xml")


def test_a_folder_that_cannot_be_made_is_blamed_on_the_option_that_named_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "samples.jsonl"
    gathered(path, 2)
    assert main(["replay", str(path), "--perf-report", str(path / "out")]) == 2
    assert capsys.readouterr().err.startswith("power: --perf-report ")


def _rate(share: float, regression: float, kind: str = "compute") -> RatedLevel:
    rate = Rate(regression, regression, regression)
    tally = Tally("a rule", rate, rate, 10, 10, 1.0, 1.0, 1.0)
    return RatedLevel(Level(kind, share), False, tally)


def test_a_slowdown_is_detected_if_every_larger_one_is() -> None:
    key = "a rule, baseline as it is, judged as it is"
    found = smallest_detected([_rate(0.10, 1.0), _rate(0.05, 0.96), _rate(0.03, 0.5)])
    assert found == {key: 0.05}
    lucky = smallest_detected([_rate(0.10, 1.0), _rate(0.05, 0.6), _rate(0.03, 0.97)])
    assert lucky == {key: 0.10}
    assert smallest_detected([_rate(0.10, 0.9), _rate(0.05, 1.0)]) == {key: None}
    assert smallest_detected([_rate(0.05, 1.0, kind="sleep")]) == {}
