"""Several records of one run become one, and nothing that was found is lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fixtures.records.baselines import StagedEntry
from fixtures.records.merging import MESSAGE, Message, Workers, merged
from fixtures.records.outcome import Outcome, Reason
from fixtures.records.run import RunRecord
from fixtures.records.timing import Interval
from tests.support.runs import entry, run_record, scenario_record, verdict


def test_no_verdict_and_no_figure_of_a_scenario_is_lost_and_none_counts_twice() -> None:
    """As one process keeps it once: why a scenario is not in effect is said by many tests."""
    good = verdict("storybook-fp16")
    bad = verdict("storybook-fp16", Outcome.REGRESSION, "SSIM")
    speedup = Interval(2.0, 1.0, 3.0)
    run = merged(
        [
            run_record(scenario_record("fp16", verdicts=[good], peak_bytes=7)),
            run_record(scenario_record("fp16", verdicts=[good, bad], speedup=speedup)),
            run_record(scenario_record("fp16", verdicts=[bad], ssim=0.5, counts=entry().counts)),
        ]
    )
    record = run.scenarios["storybook-fp16"]
    assert record.verdicts == [good, bad]
    assert (record.peak_bytes, record.ssim, record.speedup) == (7, 0.5, speedup)
    assert record.counts == entry().counts
    assert run.notes == []


def test_figures_that_differ_are_noted_and_an_empty_text_is_none() -> None:
    figures: list[dict[str, Any]] = [
        {"ssim": 0.7},
        {"ssim": 0.8, "timed_against": "fp32"},
        {"ssim": 0.7},
    ]
    run = merged([run_record(scenario_record("fp16", **each)) for each in figures])
    record = run.scenarios["storybook-fp16"]
    assert (record.ssim, record.timed_against) == (0.7, "fp32")
    assert run.notes == [
        "storybook-fp16: two workers disagree about its ssim; the first one's is shown"
    ]


def test_claims_add_up_and_notes_stand_once() -> None:
    first = RunRecord(claims={"hold": 2}, notes=["a", "b"])
    run = merged([first, RunRecord(claims={"hold": 1, "missed": 4}, notes=["b", "c"])])
    assert run.claims == {"hold": 3, "missed": 4}
    assert run.notes == ["a", "b", "c"]


def test_the_device_is_taken_over_and_another_one_is_noted() -> None:
    on_device = RunRecord("nvidia-h200", {"memory_gib": 140}, {"torch": "2.13"}, "random")
    # A worker without a test knows no device.
    run = merged([RunRecord(), on_device, RunRecord("nvidia-l4")])
    (note,) = run.notes
    assert note.startswith("parts of this run differ (device nvidia-h200 -> nvidia-l4, memory_gib")
    run.notes = []
    assert run == on_device


def test_a_failure_counts_whatever_another_part_could_not_run_and_commits_are_told() -> None:
    failed = scenario_record("fp16", verdicts=[verdict("storybook-fp16", Outcome.REGRESSION)])
    absent = scenario_record("fp16", unsupported=Reason("needs diffusers 0.33"))
    for parts in ((failed, absent), (absent, failed)):
        runs = [run_record(replace(part)) for part in parts]
        runs[0].commit, runs[1].commit = "abc", "def"
        whole = merged(runs)
        assert whole.summary(strict=False)["failed"] == 1
        assert whole.notes == [
            "parts of this run are of different commits of the suite: abc and def",
            "storybook-fp16 ran in one part of this run, in another not: needs diffusers 0.33",
        ]


def test_shards_become_one_run_in_the_order_given() -> None:
    late = run_record(scenario_record("fp16"), recorded_at="2026-02-01T10:00", commit="abc")
    early = run_record(
        scenario_record("bf16"), scenario_record("fp32"), recorded_at="2026-01-31T10:00"
    )
    whole = merged([late, early])
    assert [record.technique for record in whole.scenarios.values()] == ["fp16", "bf16", "fp32"]
    assert (whole.recorded_at, whole.commit) == ("2026-01-31T10:00", "abc")
    assert merged([]) == RunRecord()


# Workers


def test_workers_that_end_without_a_word_are_named() -> None:
    workers, message = Workers(), MESSAGE.dump(Message(RunRecord()))
    assert workers.lost == ""
    workers.started.update(("gw10", "gw9", "gw1"))
    workers.ended("gw1", message)
    workers.ended("gw9", None)
    assert workers.lost == "workers gw9, gw10 crashed or were stopped"
    # The replacement of a crashed worker does not bring back what the crashed one had found.
    workers.ended("gw10", message)
    workers.ended("gw11", message)
    assert workers.lost == "worker gw9 crashed or was stopped"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"run": {"schema": 99}}', '{"run": null}'])
def test_a_worker_that_is_not_understood_told_nothing(text: str) -> None:
    workers = Workers()
    workers.ended("gw0", text)
    assert workers.lost == "worker gw0 crashed or was stopped"
    assert workers.staged == []


def test_what_workers_found_is_put_into_an_order_and_what_they_staged_is_by_their_numbers() -> None:
    workers, run = Workers(), RunRecord()
    for name in ("gw10", "gw2"):
        staged = StagedEntry("cpu", "storybook", name, entry())
        run_of_worker = run_record(scenario_record(name))
        workers.ended(name, MESSAGE.dump(Message(run_of_worker, staged=(staged,))))
    assert [record.technique for record in workers.staged] == ["gw2", "gw10"]
    workers.merge_into(run, ["storybook-gw10", "storybook-gw2"])
    assert list(run.scenarios) == ["storybook-gw10", "storybook-gw2"]
