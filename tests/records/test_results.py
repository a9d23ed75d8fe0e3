"""Records as JSON: nothing is lost, nothing else is taken for one, and several become one."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.report.merging import Message, Workers, merge
from fixtures.report.record import Control, RunRecord, ScenarioRecord
from fixtures.report.results import SCHEMA, ResultsError, from_json, to_json
from fixtures.statistics import Interval
from fixtures.timeline import Timeline
from fixtures.verdicts import Outcome, Verdict

WIDE = settings(max_examples=50, deadline=None, derandomize=True, database=None)
NAMES = st.text(max_size=8)
FIGURES = st.none() | st.floats(allow_nan=False) | st.integers(-(2**60), 2**60)
VERDICTS = st.builds(
    Verdict,
    scenario=NAMES,
    metric=NAMES,
    outcome=st.sampled_from(Outcome),
    sentence=NAMES,
    measured=FIGURES,
    baseline=FIGURES,
    limit=FIGURES,
)
WHOLE = st.integers(0, 2**60)
TIMELINES = st.builds(
    Timeline,
    stride=WHOLE,
    live_bytes=st.lists(WHOLE, max_size=3).map(tuple),
    phases=st.lists(st.tuples(WHOLE, NAMES), max_size=3).map(tuple),
    peak_at=WHOLE,
    alive_at_peak=st.dictionaries(NAMES, WHOLE, max_size=3),
    work=st.dictionaries(NAMES, st.tuples(WHOLE, WHOLE, WHOLE), max_size=3),
)
CONTROLS = st.builds(
    Control,
    name=NAMES,
    ssim=st.floats(allow_nan=False),
    picture=st.just("data:image/webp;base64,AAAA"),
)
RECORDS = st.builds(
    ScenarioRecord,
    id=NAMES,
    workload=NAMES,
    technique=NAMES,
    family=NAMES,
    documented_speedup=FIGURES,
    latency_ms=FIGURES,
    speedup=st.none() | st.builds(Interval, *[st.floats(allow_nan=False)] * 3),
    peak_bytes=st.none() | st.integers(0, 2**60),
    reference_peak_bytes=st.none() | st.integers(0, 2**60),
    ssim=FIGURES,
    unsupported=st.none() | NAMES,
    ratios=st.lists(st.floats(allow_nan=False), max_size=3),
    baseline_ratios=st.lists(st.floats(allow_nan=False), max_size=3),
    evidence=st.lists(NAMES, max_size=3),
    rounds_ms=st.lists(st.lists(st.lists(st.floats(allow_nan=False), max_size=3)), max_size=2),
    changed=st.lists(NAMES, max_size=3),
    timeline=st.none() | TIMELINES,
    verdicts=st.lists(VERDICTS, max_size=3),
)
RUNS = st.builds(
    RunRecord,
    device_key=NAMES,
    hardware=st.dictionaries(NAMES, st.one_of(NAMES, st.integers(-9, 9), st.lists(NAMES))),
    software=st.dictionaries(NAMES, NAMES),
    scenarios=st.lists(RECORDS, max_size=3).map(lambda records: {one.id: one for one in records}),
    notes=st.lists(NAMES, unique=True, max_size=3),
    claims=st.dictionaries(NAMES, st.integers(1, 9), max_size=3).map(Counter),
    controls=st.dictionaries(NAMES, st.lists(CONTROLS, max_size=2), max_size=2),
    recorded_at=NAMES,
    commit=NAMES,
)


TIMELINE = {
    "stride": 1,
    "live_bytes": [1],
    "phases": [[0, "vae"]],
    "peak_at": 0,
    "alive_at_peak": {"vae": 1},
    "work": {},
}


def verdict(name: str, outcome: Outcome = Outcome.PASS, metric: str = "counter") -> Verdict:
    return Verdict(f"storybook-{name}", metric, outcome, f"{metric} of {name}")


def record(name: str, *verdicts: Verdict, **figures: Any) -> ScenarioRecord:
    made = ScenarioRecord(f"storybook-{name}", "storybook", name, "precision", **figures)
    made.verdicts = list(verdicts)
    return made


def run_of(*records: ScenarioRecord, **fields: Any) -> RunRecord:
    return RunRecord(scenarios={one.id: one for one in records}, **fields)


# One record


@WIDE
@given(RUNS)
def test_what_is_written_is_read_again(run: RunRecord) -> None:
    text = json.dumps(to_json(run), allow_nan=False)
    again = from_json(json.loads(text))
    assert again == run
    assert list(again.scenarios) == list(run.scenarios)
    assert again.counts(strict=True) == run.counts(strict=True)
    assert json.dumps(to_json(again)) == text


def test_every_field_of_a_record_is_written() -> None:
    one = record("fp16", verdict("fp16"))
    (stored,) = to_json(run_of(one))["scenarios"]
    assert stored.keys() == {field.name for field in dataclasses.fields(ScenarioRecord)}
    assert stored["verdicts"][0].keys() == {field.name for field in dataclasses.fields(Verdict)}


@pytest.mark.parametrize(
    ("value", "text"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")]
)
def test_a_figure_that_is_not_finite_survives_as_a_word(value: float, text: str) -> None:
    stored = to_json(run_of(record("fp16", ssim=value)))
    assert stored["scenarios"][0]["ssim"] == text
    again = from_json(json.loads(json.dumps(stored, allow_nan=False)))
    assert str(again.scenarios["storybook-fp16"].ssim) == str(value)


def test_what_numpy_computed_is_written_as_a_plain_number() -> None:
    one = record("fp16", ssim=np.float32(0.5), peak_bytes=np.int64(7))
    stored = json.loads(json.dumps(to_json(run_of(one))))["scenarios"][0]
    assert (stored["ssim"], stored["peak_bytes"]) == (0.5, 7)
    assert isinstance(stored["peak_bytes"], int)


@pytest.mark.parametrize("stored", [None, [], "run", 1])
def test_what_is_no_object_is_refused(stored: Any) -> None:
    with pytest.raises(ResultsError, match="they are no JSON object"):
        from_json(stored)


@pytest.mark.parametrize("schema", [None, 0, 3, "1", True])
def test_another_schema_is_refused(schema: Any) -> None:
    with pytest.raises(ResultsError) as caught:
        from_json({**to_json(RunRecord()), "schema": schema})
    assert str(caught.value) == f"Results have schema {schema!r}, this suite reads 1 and {SCHEMA}."


def test_a_file_of_the_first_schema_is_read_without_what_it_does_not_have() -> None:
    stored = to_json(run_of(record("fp16", verdict("fp16")), commit="abc", recorded_at="now"))
    stored["schema"] = 1
    for name in ("recorded_at", "commit", "controls"):
        del stored[name]
    for name in ("rounds_ms", "changed", "timeline"):
        del stored["scenarios"][0][name]
    assert from_json(stored) == run_of(record("fp16", verdict("fp16")))


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("device",), None),
        (("device", "key"), 1),
        (("notes",), [1]),
        (("claims",), {"hold": "many"}),
        (("claims",), {"hold": math.inf}),
        (("software",), {"torch": 2.13}),
        (("scenarios",), {"storybook-fp16": {}}),
        (("scenarios", 0), {}),
        (("scenarios", 0, "latency_ms"), "fast"),
        (("scenarios", 0, "latency_ms"), True),
        (("scenarios", 0, "latency_ms"), []),
        (("scenarios", 0, "speedup"), [1.0]),
        (("scenarios", 0, "unsupported"), 1),
        (("scenarios", 0, "rounds_ms"), [[[None]]]),
        (("scenarios", 0, "changed"), [1]),
        (("scenarios", 0, "timeline"), {}),
        (("scenarios", 0, "timeline"), {**TIMELINE, "stride": 1.5}),
        (("scenarios", 0, "timeline"), {**TIMELINE, "work": {"copy": [1, 2]}}),
        (("controls",), {"storybook": [{"name": "black", "ssim": 0.1, "picture": "http://x"}]}),
        (("recorded_at",), 1),
        (("scenarios", 0, "verdicts", 0, "outcome"), "fine"),
        (("scenarios", 0, "verdicts", 0, "sentence"), None),
    ],
)
def test_a_wrong_value_is_refused_in_one_sentence(where: tuple[Any, ...], value: Any) -> None:
    stored = to_json(run_of(record("fp16", verdict("fp16"))))
    inner: Any = stored
    for part in where[:-1]:
        inner = inner[part]
    inner[where[-1]] = value
    with pytest.raises(ResultsError) as caught:
        from_json(stored)
    assert str(caught.value).startswith("Results are no record of a run (")
    assert "\n" not in str(caught.value)


# Several records


def told(run: RunRecord, **met: int) -> Message:
    """The message of a worker as it arrives."""
    places = {f"storybook-{name}": place for name, place in met.items()}
    return Message.decode(Message(run, places).encode())


def test_scenarios_of_several_workers_stand_in_the_order_of_one_process() -> None:
    run = RunRecord()
    places = {"fp32": 0, "fp16": 1, "bf16": 2}
    merge(
        run,
        [
            told(run_of(record("bf16"), record("fp32")), **places),
            told(run_of(record("fp16")), **places),
        ],
    )
    assert [one.technique for one in run.scenarios.values()] == ["fp32", "fp16", "bf16"]


def test_no_verdict_and_no_figure_of_a_scenario_is_lost() -> None:
    good, bad = verdict("fp16"), verdict("fp16", Outcome.REGRESSION, "SSIM")
    run = RunRecord()
    merge(
        run,
        [
            told(run_of(record("fp16", good, peak_bytes=7))),
            told(run_of(record("fp16", bad, ssim=0.5, speedup=Interval(2.0, 1.0, 3.0)))),
        ],
    )
    merged = run.scenarios["storybook-fp16"]
    assert merged.verdicts == [good, bad]
    assert merged.status == "regression"
    assert (merged.peak_bytes, merged.ssim, merged.speedup) == (7, 0.5, Interval(2.0, 1.0, 3.0))
    assert run.notes == []


def test_figures_that_differ_are_noted() -> None:
    run = RunRecord()
    merge(run, [told(run_of(record("fp16", peak_bytes=figure))) for figure in (7, 8, 7)])
    assert run.scenarios["storybook-fp16"].peak_bytes == 7
    assert run.notes == [
        "storybook-fp16: two workers disagree about its peak bytes; the first one's is shown"
    ]


def test_notes_stand_in_the_order_of_one_process_and_once() -> None:
    one, two = RunRecord(), RunRecord()
    for worker, place, sentence in ((one, 5, "last"), (one, 6, "common"), (two, 1, "first")):
        worker.place = place
        worker.note(sentence)
    two.place = 2
    two.note("common")
    run = RunRecord()
    merge(run, [told(one), told(two)])
    assert run.notes == ["first", "common", "last"]


def test_claims_add_up() -> None:
    run = RunRecord()
    counted = [{"hold": 2}, {"hold": 1, "not measured": 4}]
    merge(run, [told(RunRecord(claims=Counter(claims))) for claims in counted])
    assert run.claims == {"hold": 3, "not measured": 4}


def test_the_device_is_taken_over_and_another_one_is_noted() -> None:
    run = RunRecord()
    merge(
        run,
        [
            told(RunRecord()),  # a worker without a test knows no device
            told(RunRecord("nvidia-h200", {"memory_gib": 140}, {"torch": "2.13"})),
            told(RunRecord("nvidia-l4")),
        ],
    )
    assert (run.device_key, run.hardware, run.software) == (
        "nvidia-h200",
        {"memory_gib": 140},
        {"torch": "2.13"},
    )
    (note,) = run.notes
    assert note.startswith("workers measured on different devices, nvidia-h200 and nvidia-l4: ")


def test_workers_that_end_without_a_word_are_named() -> None:
    workers = Workers()
    assert workers.lost == ""
    for name in ("gw10", "gw9", "gw1"):
        workers.started.add(name)
    workers.ended("gw1", Message(RunRecord()).encode())
    workers.ended("gw9", None)
    assert workers.lost == "workers gw9, gw10 crashed or were stopped"
    # The replacement of a crashed worker does not bring back what the crashed one had found.
    workers.ended("gw10", Message(RunRecord()).encode())
    workers.ended("gw11", Message(RunRecord()).encode())
    assert workers.lost == "worker gw9 crashed or was stopped"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"run": {"schema": 99}}', '{"run": null}'])
def test_a_worker_that_is_not_understood_told_nothing(text: str) -> None:
    workers = Workers()
    workers.ended("gw0", text)
    assert workers.lost == "worker gw0 crashed or was stopped"


def test_staged_baselines_travel_with_the_record() -> None:
    workers = Workers()
    for name in ("gw10", "gw2"):
        message = Message(RunRecord(), staged=({"key": [name], "entry": {"ssim": 0.5}},))
        workers.ended(name, message.encode())
    assert [one["key"] for one in workers.staged] == [["gw2"], ["gw10"]]
