"""A baseline with anything odd in it: one sentence, or verdicts; and nothing stored changes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fixtures.metrics.counts import COUNTS, HOST
from fixtures.metrics.latency_verdicts import judge_latency
from fixtures.metrics.peak_memory import judge_peak_memory
from fixtures.records.baseline_store import BaselineStore
from fixtures.records.baselines import Baseline, BaselineError
from fixtures.records.outcome import Verdict
from fixtures.records.run import RunRecord
from fixtures.report.plain import printed
from fixtures.scenarios import find_scenario
from fixtures.settings import Settings
from fixtures.suite.cases import Cases
from fixtures.verdicts.case import Case
from tests.support.counting import counts, host_calls
from tests.support.fake_device import FakeDevice
from tests.support.odd import ODD, Place, places, spoilt
from tests.support.runs import entry, scenario_record, timing

SCENARIO = find_scenario("storybook", "bf16")
SOUND = Baseline(
    workload="storybook",
    device="fake",
    scenarios={
        name: entry(counts=counts(mm=3, add=1).beside(host_calls())) for name in ("bf16", "fp32")
    },
)
TEXT = SOUND.text()
DOCUMENT = json.loads(TEXT)
PLACES = list(places(DOCUMENT))


def stored(folder: Path, text: str) -> Path:
    path = folder / "fake" / "storybook.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def case_of(folder: Path) -> Case:
    cases = Cases(FakeDevice(), Settings(), BaselineStore(folder), RunRecord(), comparisons=3)
    return cases.case(SCENARIO)


def verdicts(case: Case) -> Iterator[Verdict]:
    """Everything that is judged against an entry."""
    record = scenario_record("bf16", counts=counts(mm=3).beside(host_calls()))
    yield from COUNTS.judge(case, record)
    yield from HOST.judge(case, record)
    yield judge_peak_memory(case, {"whole": 7 << 20}, "ledger")
    yield from judge_latency(case, [timing(), timing(1.1)])


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.sampled_from(PLACES), odd=st.sampled_from(ODD))
def test_a_spoilt_baseline_is_refused_in_one_sentence_or_judged(
    place: Place, odd: Any, tmp_path: Path
) -> None:
    text = spoilt(DOCUMENT, place, odd)
    path = stored(tmp_path, text)
    refusal, case = "", None
    try:
        case = case_of(tmp_path)
    except BaselineError as error:
        refusal = str(error)
    if case is None:
        assert str(path) in refusal
        assert refusal.isprintable()
    else:
        for verdict in verdicts(case):
            assert printed(verdict.sentence).isprintable()
            assert all(map(math.isfinite, filter(None, (verdict.measured, verdict.baseline))))
    assert path.read_text(encoding="utf-8") == text


def test_most_of_them_are_refused_and_a_sound_one_is_not(tmp_path: Path) -> None:
    stored(tmp_path, TEXT)
    assert {one.outcome.value for one in verdicts(case_of(tmp_path))} >= {"pass"}
    refused = 0
    for place in PLACES[::5]:
        for odd in ODD:
            stored(tmp_path, spoilt(DOCUMENT, place, odd))
            try:
                case_of(tmp_path)
            except BaselineError:
                refused += 1
    assert refused > len(PLACES[::5]) * len(ODD) // 3
