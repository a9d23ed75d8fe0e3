"""What scenarios are judged against: the stored entry, on hardware like this or on other."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fixtures.measuring.recording import timing_of
from fixtures.metrics.counts import HOST
from fixtures.metrics.latency_tolerances import (
    CONTROL_TOLERANCE,
    FP32_TOLERANCE,
    RATIO_TOLERANCE,
    SESSIONS_DIFFER,
    STEADY_SESSIONS_DIFFER,
)
from fixtures.records.baseline_store import BaselineStore
from fixtures.records.baselines import Entry
from fixtures.records.images import STORED, encoded
from fixtures.records.outcome import Outcome
from fixtures.records.run import RunRecord
from fixtures.scenarios import scenarios
from fixtures.settings import Settings, SettingsError
from fixtures.suite.cases import Cases
from fixtures.suite.session import check_weights
from fixtures.verdicts.image_limits import NONE, Variation
from fixtures.verdicts.statistics import NO_PRIOR, OTHERS_DOF
from tests.support.counting import counts, host_calls
from tests.support.fake_device import FakeDevice
from tests.support.runs import RECORDED, entry, latency, scenario_record
from tests.support.scenarios import find_scenario

FP16 = find_scenario("storybook", "fp16")
HARDWARE = {"processor": "Testron 9000", "instruction_sets": ["avx2"]}
OTHER_NAME = {"processor": "Testron 9001", "instruction_sets": ["avx2"]}
OTHER_SETS = {"processor": "Testron 9000", "instruction_sets": ["avx2", "amx_bf16"]}


def stored(hardware: Mapping[str, Any] = HARDWARE, **changes: Any) -> Entry:
    """An entry with a session of this hardware."""
    timing = timing_of(FP16, FakeDevice())
    return entry(**{"latency": (latency(hardware=hardware, timing=timing),), **changes})


def cases(folder: Path, entries: Mapping[str, Entry], settings: Settings | None = None) -> Cases:
    """The cases of a device with these entries of storybook's."""
    store = BaselineStore(folder)
    for technique, made in entries.items():
        store.stage("fake", "storybook", technique, made)
    store.commit()
    device = FakeDevice(hardware=HARDWARE)
    return Cases(device, settings or Settings(), store, RunRecord(), comparisons=14)


def test_a_scenario_is_judged_against_its_entry(tmp_path: Path) -> None:
    mine = stored()
    of_fake = cases(tmp_path, {"fp16": mine, "bf16": stored(ssim=0.5)})
    case = of_fake.case(FP16)
    assert case.scenario == "storybook-fp16"
    assert case.entry == mine
    assert case.comparisons == 14
    assert case.timing == timing_of(FP16, FakeDevice())
    assert case.sessions == case.own_sessions == list(mine.latency)
    assert case.half_precision
    assert case.memory_source == "ledger"
    assert of_fake.run.notes == []
    assert of_fake.case(FP16.with_technique("torch_compile")).memory_source == "profiler"


def test_counts_that_an_entry_has_lost_fail_and_what_is_older_than_a_metric_does_not(
    tmp_path: Path,
) -> None:
    lost = stored(counts=counts(mm=1000))
    for date, outcome in ((RECORDED.date, Outcome.NO_BASELINE), ("2999-01-01", Outcome.NOT_JUDGED)):
        other = stored(recorded=replace(RECORDED, date=date))
        case = cases(tmp_path / date, {"fp16": lost, "bf16": other}).case(FP16)
        [verdict] = HOST.judge(case, scenario_record("fp16", counts=host_calls()))
        assert verdict.outcome is outcome
        assert ("has lost its host calls" in verdict.sentence) == (date == RECORDED.date)
        assert "--perf-reason" in verdict.sentence


def test_a_scenario_is_judged_by_its_own_image_and_by_how_far_that_varies_without_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def measured(*of: str) -> Mapping[str, Variation]:
        asked.append(of)
        return {STORED: NONE}

    monkeypatch.setattr("fixtures.scenarios.harmless_variation", measured)
    images = np.random.default_rng(0).integers(0, 256, (2, 1, 8, 8, 3)).astype(np.float32) / 255
    entries = {
        name: stored(images=tuple(encoded(drawn, lossless=True)))
        for name, drawn in zip(("fp32", "fp16"), images, strict=True)
    }
    of_fake = cases(tmp_path, entries)
    assert of_fake.case(FP16).harmless == {STORED: NONE}
    assert asked == [("cpu", "storybook", "fp16")]
    for scenario, expected in zip((FP16.reference, FP16), images, strict=True):
        drawn = of_fake.images(scenario)
        assert drawn is not None
        assert np.array_equal(drawn, expected)
    assert of_fake.images(FP16.with_technique("bf16")) is None
    assert of_fake.images(find_scenario("storybook", "fp16", "my/pipeline")) is None


@pytest.mark.parametrize(
    ("entries", "settings", "is_known"),
    [
        ({}, Settings(), False),
        ({"bf16": stored()}, Settings(), True),
        ({}, Settings(strict=True), True),
        ({}, Settings(expect_device="fake"), True),
    ],
    ids=["nothing stored", "other entries", "strict", "expected"],
)
def test_a_device_is_known_by_any_entry_or_where_one_is_demanded(
    entries: Mapping[str, Entry], settings: Settings, is_known: bool, tmp_path: Path
) -> None:
    case = cases(tmp_path, entries, settings).case(FP16)
    assert case.entry is None
    assert case.sessions == []
    assert case.device_is_known is is_known


@pytest.mark.parametrize(
    ("workload", "device", "steps"),
    [
        ("storybook", "cuda", 3),
        ("storybook", "simulated", 20),
        ("sd15", "simulated", 3),  # it draws nothing
    ],
)
def test_the_steps_are_those_of_the_call_that_is_counted(
    workload: str, device: str, steps: int, tmp_path: Path
) -> None:
    scenario = find_scenario(workload, "fp16")
    assert scenario.workload.representative_steps == 3 < scenario.workload.call.steps
    case = replace(cases(tmp_path, {}), device=FakeDevice(name=device)).case(scenario)
    assert case.limits.steps == steps


@pytest.mark.parametrize(
    ("session", "command"),
    [
        ("perf", "nox -s refresh -- "),
        ("compare", "nox -s refresh -- "),
        ("tests", "python -m pytest perf_tests --perf-update-baselines "),
        (None, "python -m pytest perf_tests --perf-update-baselines "),
    ],
)
def test_the_command_that_accepts_runs_with_the_packages_and_options_of_this_run(
    session: str | None, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NOX_CURRENT_SESSION", raising=False)
    if session is not None:
        monkeypatch.setenv("NOX_CURRENT_SESSION", session)
    settings = Settings(device="cpu", weights="my pipeline", baselines=tmp_path / "mine")
    assert cases(tmp_path, {}, settings).case(FP16).refresh == (
        f'{command}{settings.chosen} -k "[storybook-fp16]" --perf-reason "WHY"'
    )


@pytest.mark.parametrize(
    ("hardware", "fp16", "fp32"), [(OTHER_NAME, True, True), (OTHER_SETS, False, True)]
)
def test_other_hardware_is_noted_once_and_half_precision_needs_the_same_instructions(
    hardware: Mapping[str, Any], fp16: bool, fp32: bool, tmp_path: Path
) -> None:
    of_fake = cases(tmp_path, dict.fromkeys(("fp16", "fp32"), stored(hardware)))
    for scenario, comparable in ((FP16, fp16), (FP16.reference, fp32)):
        case = of_fake.case(scenario)
        assert case.own_sessions == []
        assert bool(case.sessions) is comparable
    (note,) = of_fake.run.notes
    assert note.startswith("latency is judged by samples of other processors, so a loss")
    assert "this is Testron 9000, avx2; record its own with: " in note


def test_sessions_differ_as_documented_of_the_clock(tmp_path: Path) -> None:
    of_fake = cases(tmp_path, {})
    assert of_fake.case(FP16).priors.session == SESSIONS_DIFFER
    watched = replace(of_fake, device=FakeDevice(steady_clock=True))
    assert watched.case(FP16).priors.session == STEADY_SESSIONS_DIFFER


@pytest.mark.parametrize("has_frozen_reference", [True, False])
def test_the_workload_s_other_scenarios_say_how_far_processes_differ(
    has_frozen_reference: bool, tmp_path: Path
) -> None:
    """fp32 takes part where it is timed against what the others are timed against."""
    source = FP16.workload.frozen_source if has_frozen_reference else None
    fp16 = replace(FP16, workload=replace(FP16.workload, frozen_source=source))
    wide, narrow = (0.9, 0.95, 1.0, 1.05, 1.1), (0.98, 0.99, 1.0, 1.01, 1.02)
    names = ("bf16", "sdpa", "channels_last")
    ratios = {"fp32": wide, "fp16": wide, **dict.fromkeys(names, narrow)}
    entries = {name: stored(latency=(latency(of),)) for name, of in ratios.items()}
    of_fake = cases(tmp_path, entries)
    of_fp16, of_fp32 = (
        of_fake.case(fp16).priors.process,
        of_fake.case(fp16.reference).priors.process,
    )
    assert of_fp16.deviation == pytest.approx(0.0158, rel=0.01)
    assert of_fp16.dof == OTHERS_DOF
    assert of_fp32 == (of_fp16 if has_frozen_reference else NO_PRIOR)


@pytest.mark.parametrize(
    ("workload", "weights", "is_own"),
    [
        ("storybook", "random", False),
        ("storybook", "/a/folder", False),
        ("sd15", "o/n", False),
        ("storybook", "", True),
        ("sd15", "random", True),
    ],
)
def test_only_a_workload_s_own_weights_are_judged_by_the_stored_baselines(
    workload: str, weights: str, is_own: bool, tmp_path: Path
) -> None:
    matrix = scenarios([workload], weights)
    check_weights(Settings(weights=weights, baselines=tmp_path), matrix)
    refused = pytest.raises(SettingsError, match=r"^--perf-weights needs --perf-baselines DIR")
    with nullcontext() if is_own else refused:
        check_weights(Settings(weights=weights), matrix)


def test_other_weights_are_another_scenario_among_the_baselines(tmp_path: Path) -> None:
    settings = Settings(baselines=tmp_path)
    of_fake = cases(tmp_path, {"fp16": stored()}, settings)
    mine, other = (find_scenario("storybook", "fp16", name) for name in ("a/mine", "b/mine"))
    assert of_fake.case(mine).entry is None
    of_fake.store.stage("fake", mine.stored_as, "fp16", stored(ssim=0.5))
    of_fake.store.commit()
    assert of_fake.case(mine).entry == stored(ssim=0.5)
    assert of_fake.case(find_scenario("storybook", "fp16", "./a/mine/")).entry is not None
    assert of_fake.case(other).entry is None
    assert of_fake.case(FP16).entry == stored()
    assert (mine.weights, FP16.weights) == ("a/mine", "embedded")


def test_fp32_is_held_to_the_frozen_reference_more_strictly_than_techniques(tmp_path: Path) -> None:
    of_fake = cases(tmp_path, dict.fromkeys(("fp16", "fp32"), stored()))
    without = replace(FP16, workload=replace(FP16.workload, frozen_source=None))
    assert of_fake.case(FP16).tolerance == RATIO_TOLERANCE
    assert of_fake.case(FP16.reference).tolerance == FP32_TOLERANCE
    assert of_fake.case(without).tolerance == RATIO_TOLERANCE
    assert of_fake.case(without.reference).tolerance == CONTROL_TOLERANCE
