"""`nox -s report` on files that are no good: one sentence, or a report; nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fixtures.commands.report import main
from fixtures.records.codec import RecordError
from fixtures.records.images import FP32, STORED, Likeness
from fixtures.records.outcome import Outcome
from fixtures.records.record import AtPeak
from fixtures.records.run import RESULTS, RunRecord
from fixtures.records.timing import Interval
from tests.support.counting import counts, host_calls
from tests.support.odd import ODD, Place, places, spoilt
from tests.support.runs import HARDWARE, SOFTWARE, run_record, scenario_record, timing, verdict

IMAGE = "data:image/webp;base64,AAAA"
RUN = run_record(
    scenario_record(
        "fp16",
        counts=counts(mm=3).beside(host_calls()),
        component_peak_bytes={"whole": 7 << 20, "vae": 5},
        reference_peak_bytes=9 << 20,
        ssim=0.5,
        wall_ms=100.0,
        speedup=Interval(2.0, 1.0, 3.0),
        documented_speedup=1.5,
        timings=[timing(), timing(1.1)],
        changed=["torch 1 -> 2"],
        images=[IMAGE],
        likeness={FP32: [Likeness(0.5, 0.1, 0.02, 0.3, 0.4)]},
        not_compared={STORED: (Outcome.NO_BASELINE, "it cannot be read")},
        stored_apart=[Likeness(1.0, 0.0, 0.0)],
        stored_images=[IMAGE],
        flip_maps={FP32: [IMAGE], STORED: [IMAGE]},
        verdicts=[
            verdict("storybook-fp16", Outcome.REGRESSION, measured=1.2, baseline=1.0, limit=1.1),
            verdict("storybook-fp16", Outcome.PASS, "counts", measured=3.0, baseline=2.0),
        ],
    ),
    scenario_record(
        "sdpa",
        workload="sd15",
        counts=counts(mm=3),
        bound_ms=5.0,
        documented_speedup=1.2,
        component_peak_bytes={"whole": 6 << 20},
        at_peak=AtPeak("vae", {"vae": 1 << 20}),
        work={"copy": (1, 2, 3)},
    ),
    notes=["a note"],
    claims={"hold": 1},
)
DOCUMENT = json.loads(RESULTS.dump(RUN))


def readable(text: str) -> bool:
    try:
        RESULTS.load(text, "here")
    except RecordError:
        return False
    return True


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(place=st.sampled_from(list(places(DOCUMENT))), odd=st.sampled_from(ODD))
def test_a_spoilt_results_file_is_refused_in_one_sentence_or_shown(
    place: Place, odd: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "spoilt.json", tmp_path / "out"
    text = spoilt(DOCUMENT, place, odd)
    path.write_text(text, encoding="utf-8")
    status = main([str(path), "--perf-report", str(out)])
    said = capsys.readouterr().err
    assert status == (0 if readable(text) else 2)
    if status:
        assert said.count("\n") == 1
        assert str(path) in said
    else:
        assert RESULTS.read(out / "results.json") is not None
    assert path.read_text(encoding="utf-8") == text


def stored(path: Path, run: RunRecord = RUN) -> str:
    path.write_text(RESULTS.dump(run), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("other", ["itself", "a later copy"])
def test_a_part_that_is_given_twice_is_refused(
    other: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part, again = tmp_path / "part.json", tmp_path / "again.json"
    stored(part)
    if other == "itself":
        again = part
    else:
        stored(again, replace(RUN, recorded_at="2026-01-31T10:00:01+00:00"))
    out = tmp_path / "out"
    assert main(["--merge", str(part), str(again), "--perf-report", str(out)]) == 2
    assert capsys.readouterr().err == (
        f"report: --merge: {again} holds the same part of the run as {part}: give each part once.\n"
    )
    assert not out.exists()


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"device_key": "simulated"}, "device cpu -> simulated"),
        ({"weights": "random"}, "weights each workload's own -> random"),
        ({"hardware": {**HARDWARE, "threads": 2}}, "threads 1 -> 2"),
        ({"software": {**SOFTWARE, "diffusers": "0.36.0"}}, "diffusers 0.41.0 -> 0.36.0"),
    ],
)
def test_parts_of_different_runs_are_refused(
    other: dict[str, Any], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # An empty shard knows no device, may be equal to another one, and comes first here.
    empty, again = (stored(tmp_path / f"{name}.json", RunRecord()) for name in ("none", "again"))
    first = stored(tmp_path / "one.json", run_record(scenario_record("fp16", Outcome.PASS)))
    like = stored(tmp_path / "like.json", run_record(scenario_record("bf16", Outcome.PASS)))
    second = stored(
        tmp_path / "two.json", run_record(scenario_record("bf16", Outcome.PASS), **other)
    )
    out = tmp_path / "out"
    assert main(["--merge", empty, first, second, "--perf-report", str(out)]) == 2
    refused = f"{first} and {second} are not parts of one run ({words}): leave one out."
    assert capsys.readouterr().err == f"report: --merge: {refused}\n"
    assert not out.exists()
    assert main(["--merge", empty, again, first, like, "--perf-report", str(out)]) == 0
    whole = RESULTS.read(out / "results.json")
    assert list(whole.scenarios) == ["storybook-fp16", "storybook-bf16"]
    assert whole.notes == []
