"""The power trial: known slow-downs, samples that survive, rates that claim what they can show."""

from __future__ import annotations

import json
import math
import pickle
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pytest

from fixtures.machine import Evidence
from fixtures.power import slow_downs
from fixtures.power.__main__ import main, smallest_seen, table, tallies
from fixtures.power.collect import WEIGHTS, blocks, collect, look_at
from fixtures.power.load import load
from fixtures.power.replay import Rate, Tally, replay
from fixtures.power.rules import rules
from fixtures.power.samples import Level, Sample, Trial, TrialError, read
from fixtures.refresh import LOOKS
from fixtures.rounds import Plan, Timing
from fixtures.scenarios import Scenario, scenarios
from fixtures.statistics import Group
from fixtures.verdicts import MAX_LOOKS

SCENARIO = next(one for one in scenarios(["storybook"]) if one.technique.id == "sdpa")
UNCHANGED, LOADED = Level(), Level(loaded=True)


def sample(ratio: float, level: Level = UNCHANGED, wall: float = 1.0) -> Sample:
    """A look whose candidate rounds take `ratio` reference rounds each, and `wall` seconds."""
    group = Group((0.5, 0.5, 0.5, 0.5), (0.5 * ratio,) * 3)
    timing = Timing((group,), (wall,) * 3, 500.0 * ratio, Evidence(1.0, 0.0, 1.0))
    return Sample(level, timing, took_s=10.0, at_s=0.0)


def noisy(count: int, shift: float, noise: float, seed: int) -> list[Sample]:
    """Looks around a shift of the ratio, with walls that wander far more."""
    chance = random.Random(seed)
    return [
        sample(math.exp(shift + chance.gauss(0, noise)), wall=math.exp(chance.gauss(shift, 0.3)))
        for _ in range(count)
    ]


# Slow-downs


class _Clock:
    """CPU time that a call moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        monkeypatch.setattr(time, "thread_time", lambda: self.now_s)


@pytest.mark.parametrize("share", [0.03, 0.5])
def test_a_slow_down_is_a_share_of_the_call_s_own_cpu_time(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, spent_s = _Clock(monkeypatch), []

    class Pipeline:
        name = "kept"

        def __call__(self) -> str:
            clock.now_s += 2.0
            return "picture"

    def apply(workload: Any, device: Any) -> Iterator[Any]:
        yield Pipeline()

    monkeypatch.setitem(slow_downs.KINDS, "recorded", lambda: spent_s.append)
    plain = replace(SCENARIO, technique=replace(SCENARIO.technique, apply=apply))
    slower = slow_downs.slowed(plain, "recorded", share)
    device: Any = None
    with slower.technique.applied(SCENARIO.workload, device) as pipeline:
        assert pipeline() == "picture"
        assert pipeline.name == "kept"
    assert spent_s == [pytest.approx(2.0 * share)]
    assert slower.id == SCENARIO.id
    assert slower.reference == SCENARIO.reference


def test_computing_ends_when_its_time_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(1000))
    monkeypatch.setattr(time, "thread_time", lambda: float(next(ticks)))
    slow_downs.KINDS["compute"]()(5.0)
    assert next(ticks) == 6


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(KeyError, match="magic"):
        slow_downs.slowed(SCENARIO, "magic", 0.1)


def test_each_level_has_its_own_change(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def look(scenario: Scenario, device: str, plan: Plan, change: Any) -> Timing:
        asked.append((device, change))
        return sample(1.0).timing

    monkeypatch.setattr("fixtures.power.collect.look_in_fresh_process", look)
    look_at(SCENARIO, UNCHANGED, Plan())
    look_at(SCENARIO, Level("sleep", 0.05), Plan())
    (device, nothing), (_, change) = asked
    assert (device, nothing) == ("cpu", None)
    assert pickle.dumps(change)
    assert change.keywords == {"kind": "sleep", "share": 0.05}
    assert change(SCENARIO).technique.apply is not SCENARIO.technique.apply


def test_a_load_ends_with_what_it_ran_beside() -> None:
    before = {child.pid for child in psutil.Process().children()}
    with load(2):
        during = {child.pid for child in psutil.Process().children()} - before
        assert len(during) == 2
    assert not during & {child.pid for child in psutil.Process().children()}


# Samples


class _Cpu:
    hardware: ClassVar = {"threads": 1}


def gathered(path: Path, minutes: float, look_s: float = 60.0) -> int:
    """Collect on a fake clock that each look moves."""
    now = [0.0]

    def look(scenario: Scenario, level: Level, plan: Plan) -> Timing:
        now[0] += look_s
        return sample(1 + level.share).timing

    device: Any = _Cpu()
    return collect(
        path, SCENARIO, device, Plan(), minutes=minutes, look=look, clock=lambda: now[0],
        show=lambda line: None,
    )  # fmt: skip


def test_collecting_stops_in_time_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    pieces, whole = tmp_path / "pieces.jsonl", tmp_path / "whole.jsonl"
    assert gathered(pieces, 7) == 7
    assert gathered(pieces, 5) == 5
    assert gathered(whole, 12) == 12
    levels = [one.level for one in read([pieces]).samples]
    assert levels == [one.level for one in read([whole]).samples]


def test_a_block_holds_every_level_as_often_as_it_should() -> None:
    size = sum(WEIGHTS.values())
    stream = blocks(seed=3, done=0)
    block = [next(stream) for _ in range(size)]
    assert {level: block.count(level) for level in WEIGHTS} == dict(WEIGHTS)
    assert block != sorted(block, key=str)


def test_what_was_stored_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    gathered(path, 4)
    trial = read([path])
    assert trial.scenario == "storybook-sdpa"
    assert [Sample.from_json(one.to_json()) for one in trial.samples] == list(trial.samples)
    assert all(one.timing.look.log_ratio >= 0 for one in trial.samples)


def test_a_line_that_a_crash_cut_short_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    gathered(path, 3)
    with path.open("a") as file:
        file.write('{"level": {"ki')
    assert len(read([path]).samples) == 3
    gathered(path, 2)
    assert len(read([path]).samples) == 5


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda text: text.replace("\n", "\nnonsense\n", 1), "line 2 is not JSON"),
        (lambda text: text.replace('"took_s"', '"taken"'), "a line is no sample"),
        (lambda text: "", "no header line"),
    ],
)
def test_a_spoilt_file_is_refused_in_one_sentence(
    spoil: Any, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "samples.jsonl"
    gathered(path, 3)
    path.write_text(spoil(path.read_text()))
    assert main(["replay", str(path)]) == 2
    assert sentence in capsys.readouterr().err


def test_samples_of_another_scenario_are_refused(tmp_path: Path) -> None:
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    gathered(one, 2)
    other.write_text(one.read_text().replace("storybook-sdpa", "storybook-bf16"))
    with pytest.raises(TrialError, match="storybook-bf16"):
        read([one, other])
    with pytest.raises(TrialError, match="cannot be read"):
        read([tmp_path / "absent.jsonl"])


# Decisions

RULES = rules(LOOKS, MAX_LOOKS)


@pytest.mark.parametrize("name", RULES)
def test_every_rule_sees_twice_the_time_and_lets_equal_times_pass(name: str) -> None:
    rule = RULES[name]
    before = [sample(1.0, wall=1 + share / 1000) for share in range(40)]
    assert replay(rule, before, before, draws=50).red.estimate <= 0.3
    slower = [sample(2.0, wall=2 + share / 1000) for share in range(40)]
    tally = replay(rule, before, slower, draws=50)
    assert tally.red.estimate == 1
    assert tally.processes == 80


def test_the_suite_is_judged_by_its_own_code_and_the_others_fall_for_noise() -> None:
    calm = noisy(40, 0.0, 0.01, seed=1)
    red = {name: replay(rule, calm, calm, draws=200).red.estimate for name, rule in RULES.items()}
    assert red["this suite"] <= 0.02
    assert red["pytest-benchmark median:5%"] > 0.2
    assert red["fixed limit of 10 %"] > 0.2


def test_a_rate_claims_no_more_than_its_processes_can_show() -> None:
    before = [sample(1.0) for _ in range(20)]
    red = replay(RULES["this suite"], before, before, draws=50).red
    assert (red.estimate, red.low) == (0, 0)
    assert red.high == pytest.approx(1 - 0.05 ** (1 / 20))


def test_samples_that_run_out_leave_it_undecided() -> None:
    before = [sample(ratio) for ratio in (0.97, 1.03) * (LOOKS // 2)]
    new = [sample(ratio) for ratio in (1.05, 0.97)]
    decision = RULES["this suite"].decide(before, iter(new))
    assert (decision.undecided, decision.looks) == (True, 2)


def test_a_process_is_never_compared_with_itself() -> None:
    few = [sample(1.0) for _ in range(LOOKS)]
    with pytest.raises(ValueError, match="too few for a baseline"):
        replay(RULES["this suite"], few, few, draws=1)


def test_the_table_and_the_files_say_what_was_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "samples.jsonl"
    gathered(path, 60)
    trial = read([path])
    assert isinstance(trial, Trial)
    rows = tallies(trial, draws=10)
    assert table(trial, rows).row_count == len(rows) > 0
    assert main(["replay", str(path), "--draws", "10", "--output", str(tmp_path / "out")]) == 0
    assert "this suite" in capsys.readouterr().out
    stored = json.loads((tmp_path / "out" / "power.json").read_text())
    assert len(stored["rates"]) == len(rows)
    assert (tmp_path / "out" / "power.svg").read_bytes().startswith(b"<?xml")


def _row(share: float, red: float, rule: str = "a rule") -> Any:
    rate = Rate(red, red, red)
    tally = Tally(rule, rate, rate, 10, 10, 1.0, 1.0, 1.0)
    return Level("compute", share), False, tally


def test_the_smallest_slow_down_seen_is_one_from_which_on_all_are_seen() -> None:
    key = "a rule, baseline as it is, judged as it is"
    seen = smallest_seen([_row(0.10, 1.0), _row(0.05, 0.96), _row(0.03, 0.5)])
    assert seen == {key: 0.05}
    lucky = smallest_seen([_row(0.10, 1.0), _row(0.05, 0.6), _row(0.03, 0.97)])
    assert lucky == {key: 0.10}
    assert smallest_seen([_row(0.10, 0.9), _row(0.05, 1.0)]) == {key: None}
    assert smallest_seen([(Level(), False, _row(0.1, 1.0)[2])]) == {}
