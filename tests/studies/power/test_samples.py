"""Samples that survive a crash, and files that are refused."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby, islice, pairwise, product
from pathlib import Path
from typing import Any, get_args

import psutil
import pytest

from fixtures.devices import Device
from fixtures.devices.host import software_versions
from fixtures.measuring.rounds import Plan, timing_of
from fixtures.measuring.sampler import Sampler
from fixtures.records.codec import RecordError
from fixtures.records.timing import Group, Timing
from fixtures.scenarios import Scenario, find_scenario
from fixtures.studies.power import collect as collecting
from fixtures.studies.power.__main__ import main
from fixtures.studies.power.collect import CYCLE, TOGETHER, WEIGHTS, collect, cycles, sample_at
from fixtures.studies.power.load import load
from fixtures.studies.power.samples import SAMPLE, Header, Level, SampleSet, Where, read
from fixtures.studies.power.slowdowns import PASTIMES
from tests.studies.power.known import EVEN, UNCHANGED, known
from tests.support.fake_device import FakeDevice

SCENARIO = find_scenario("storybook", "fp32")


def gathered(path: Path, minutes: float, *, scenario: Scenario = SCENARIO, threads: int = 1) -> int:
    """Collect on a fake clock that each sample moves by a minute."""
    now_s = [0.0]

    def sample(scenario: Scenario, level: Level, plan: Plan) -> Timing:
        now_s[0] += 60.0
        return known(1 + level.share).timing

    return collect(
        path,
        scenario,
        FakeDevice(hardware={"threads": threads}),
        Plan(),
        minutes=minutes,
        sample=sample,
        clock=lambda: now_s[0],
        show=lambda line: None,
    )


def test_collecting_stops_in_time_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    pieces, whole = tmp_path / "pieces.jsonl", tmp_path / "whole.jsonl"
    assert gathered(pieces, 7) == 7
    assert gathered(pieces, 5) == 5
    assert gathered(whole, 12) == 12
    levels = [one.level for one in read([pieces]).samples]
    assert levels == [one.level for one in read([whole]).samples]


def test_a_cycle_holds_every_level_as_often_as_it_should() -> None:
    stream = cycles(seed=3, done=0)
    cycle, other = ([next(stream) for _ in range(CYCLE)] for _ in range(2))
    for one in (cycle, other):
        assert {level: one.count(level) // TOGETHER for level in WEIGHTS} == dict(WEIGHTS)
    assert cycle != other
    assert list(islice(cycles(seed=3, done=CYCLE), CYCLE)) == other
    assert list(islice(cycles(seed=3, done=CYCLE + 1), CYCLE - 1)) == other[1:]


def test_samples_of_a_level_follow_one_another() -> None:
    cycle = list(islice(cycles(seed=3, done=0), CYCLE))
    runs = [len(list(run)) for _, run in groupby(cycle)]
    assert {run % TOGETHER for run in runs} == {0}


def test_every_part_of_a_cycle_is_balanced() -> None:
    cycle = list(islice(cycles(seed=5, done=0), 0, CYCLE, TOGETHER))
    size = len(cycle)
    for level, times in WEIGHTS.items():
        places = [number for number, one in enumerate(cycle) if one == level]
        farthest = max((after - before for before, after in pairwise(places)), default=0)
        # Two places in neighbouring parts are less than two parts apart; ranks wander a little.
        assert farthest <= 2 * size / times + 7, level
    unchanged = sum(times for level, times in WEIGHTS.items() if level.is_unchanged)
    half = cycle[: size // 2]
    assert sum(level.is_unchanged for level in half) == pytest.approx(unchanged / 2, abs=4)


def test_unchanged_code_is_the_majority_and_every_slowdown_takes_part() -> None:
    unchanged = sum(times for level, times in WEIGHTS.items() if level.is_unchanged)
    assert unchanged > sum(WEIGHTS.values()) / 2
    quiet = {(one.where, one.kind, one.share) for one in WEIGHTS if not one.loaded}
    grid = product(get_args(Where)[1:], PASTIMES, (0.03, 0.05, 0.10))
    assert quiet == {("", "unchanged", 0.0), *grid}
    loaded = {(one.where, one.kind, one.share) for one in WEIGHTS if one.loaded}
    assert {one for one in quiet if one[:2] in (("", "unchanged"), ("call", "compute"))} == loaded


@pytest.mark.parametrize(
    "facts", [("compute", 0.0, "call"), ("sleep", 0.1, ""), ("unchanged", 0.0, "unet")]
)
def test_a_level_that_is_neither_unchanged_nor_slower_is_refused(facts: Any) -> None:
    with pytest.raises(ValueError, match="a slowdown has a kind"):
        Level(*facts)


def test_a_level_names_itself() -> None:
    assert str(Level("sleep", 0.05, "text encoder")) == "text encoder: sleep +5%, as it is"
    assert str(Level(loaded=True)) == "unchanged, loaded"


def test_each_level_has_its_own_change_and_load(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Device, Any, int]] = []

    def sampler(device: Device, change: Any = None) -> Sampler:
        def sample(scenario: Scenario, plan: Plan) -> Timing:
            asked.append((device, change, len(_children()) - before))
            return known(1.0).timing

        return sample

    before = len(_children())
    monkeypatch.setattr(collecting, "in_fresh_process", sampler)
    sample_at(SCENARIO, UNCHANGED, Plan())
    sample_at(SCENARIO, Level("sleep", 0.05, "unet"), Plan())
    sample_at(SCENARIO, Level(loaded=True), Plan())
    (device, nothing, alone), (_, change, _), (_, none, beside) = asked
    assert (device.key, nothing, none) == ("cpu", None, None)
    assert pickle.dumps(change)
    assert change.keywords == {"kind": "sleep", "share": 0.05, "where": "unet"}
    assert change(SCENARIO).technique.apply is not SCENARIO.technique.apply
    assert (alone, beside) == (0, psutil.cpu_count())


def _children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


def test_a_load_ends_with_what_it_ran_beside() -> None:
    before = _children()
    with load(2):
        during = _children() - before
        assert len(during) == 2
    assert not during & _children()


def test_what_was_stored_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    gathered(path, 4)
    found = read([path])
    assert found.header.scenario == "storybook-fp32"
    assert found.header.timing == timing_of(SCENARIO, FakeDevice())
    assert found.header.software == software_versions()
    assert len(found.samples) == 4
    for one in found.samples:
        assert SAMPLE.load(SAMPLE.dump(one), "it") == one
        assert one.timing == known(1 + one.level.share).timing
        assert one.took_s == 60.0


def test_a_line_that_a_crash_cut_short_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    gathered(path, 3)
    with path.open("a") as file:
        file.write('{"level": {"ki')
    assert len(read([path]).samples) == 3
    gathered(path, 2)
    assert len(read([path]).samples) == 5


def _old(text: str) -> str:
    """As the first version of the format was."""
    header, *lines = text.splitlines()
    facts = json.loads(header)
    del facts["schema"]
    return "\n".join([json.dumps(facts), *lines, ""])


def _before_the_frozen_reference(text: str) -> str:
    return text.replace('"schema": 3', '"schema": 2', 1)


def _slowed_nowhere(text: str) -> str:
    return re.sub(
        r'"where": "[^"]*"', '"where": ""', re.sub(r'"kind": "\w+"', '"kind": "sleep"', text)
    )


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (_old, "line 1, has schema None, this suite reads 3"),
        (_before_the_frozen_reference, "line 1, has schema 2, this suite reads 3"),
        (_slowed_nowhere, "is not a sample: at level: a slowdown has a kind"),
        (lambda text: text.replace('"wall_s"', '"busy_ms": 1.0, "wall_s"'), "timing.busy_ms"),
        (lambda text: text.replace("\n", "\nnonsense\n", 1), "line 2, is not JSON"),
        (lambda text: text.replace('"took_s"', '"taken"'), "line 2, is not a sample: at took_s"),
        (lambda text: text.replace('"took_s": 60.0', '"took_s": "a minute"'), "at took_s"),
        (lambda text: text.replace('"software"', '"wares"', 1), "at software"),
        (lambda text: text.replace('"software"', '"hardware"', 1), "has 'hardware' twice"),
        (lambda text: "", "line 1, is empty"),
        (lambda text: "\ud800", "codec can't decode byte"),
    ],
)
def test_a_spoilt_file_is_refused_in_one_sentence(
    spoil: Callable[[str], str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "samples.jsonl"
    gathered(path, 3)
    path.write_text(spoil(path.read_text()), errors="surrogatepass")
    assert main(["replay", str(path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"power: {path}")
    assert sentence in said
    assert said.count("\n") == 1


def test_files_of_different_origin_are_not_mixed(tmp_path: Path) -> None:
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    gathered(one, 2)
    gathered(other, 2, scenario=find_scenario("storybook", "bf16"))
    with pytest.raises(RecordError, match=r"other\.jsonl has samples of another scenario"):
        read([one, other])
    text = one.read_text()
    other.write_text(text.replace('"frozen reference": "', '"frozen reference": "0'))
    with pytest.raises(RecordError, match=r"other\.jsonl has samples of another timing"):
        read([one, other])
    other.unlink()
    gathered(other, 2, threads=8)
    with pytest.raises(RecordError, match=r"other\.jsonl has samples of another hardware"):
        read([one, other])
    with pytest.raises(RecordError, match=r"absent\.jsonl cannot be read"):
        read([tmp_path / "absent.jsonl"])


def test_files_of_the_same_origin_are_one_set(tmp_path: Path) -> None:
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    gathered(one, 2)
    gathered(other, 3)
    assert len(read([one, other]).samples) == 5


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("storybook-magic", "Technique 'magic' is unknown"),
        ("magic-fp32", "Workload 'magic' is unknown"),
        ("storybook-tf32", "cannot be sampled: needs a CUDA device"),
        ("sdxl-fp32", "is not timed against the frozen reference"),
    ],
)
def test_a_scenario_that_cannot_be_sampled_is_refused(
    name: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "samples.jsonl"
    assert main(["collect", str(path), "--scenario", name, "--minutes", "0"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"power: --scenario {name}")
    assert sentence in said
    assert said.count("\n") == 1
    assert not path.exists()


@pytest.mark.parametrize("chosen", [[], ["--scenario", "storybook-channels_last"]])
def test_a_scenario_is_chosen_by_its_name(chosen: list[str], tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    assert main(["collect", str(path), "--minutes", "0", *chosen]) == 0
    assert read([path]).header.scenario == (chosen or ["storybook-fp32"])[-1]


def test_a_file_of_other_hardware_is_not_continued(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    gathered(path, 2)
    before = path.read_bytes()
    with pytest.raises(RecordError, match="another hardware"):
        gathered(path, 2, threads=8)
    assert path.read_bytes() == before


def test_samples_can_be_cut_to_what_shorter_ones_would_have_measured() -> None:
    longer = known(1.5)
    groups = (*longer.timing.groups, Group((1.0, 1.0), (9.0,)))
    longer = replace(longer, timing=replace(longer.timing, groups=groups, wall_s=(*EVEN, 9.0)))
    header = Header("s", {}, {}, {})
    assert SampleSet(header, [longer]).cut(1) == SampleSet(header, [known(1.5)])
    assert SampleSet(header, [longer]).cut(8) == SampleSet(header, [longer])
