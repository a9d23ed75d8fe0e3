"""Records for tests: entries, samples, timings and runs that nobody measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fixtures.metrics.quantity import RUN
from fixtures.records.baselines import Entry, LatencySession, Provenance
from fixtures.records.outcome import Outcome, Reason, Verdict
from fixtures.records.run import WHOLE, RunRecord, ScenarioRecord
from fixtures.records.timing import Group, Sample, Timing
from tests.support.counting import counts, host_calls

MIB = 2**20
SOFTWARE = {"python": "3.12.0", "torch": "2.12.0", "diffusers": "0.41.0"}
HARDWARE = {"processor": "Testron 9000", "threads": 1}


RECORDED = Provenance("2026-01-31", "0123456789ab", SOFTWARE, "test")


def latency(ratios: Sequence[float] = (), **changes: Any) -> LatencySession:
    """A session whose processes saw these ratios, with some fields replaced."""
    ratios = ratios or (0.98, 0.99, 1.0, 1.01, 1.02)
    fields: dict[str, Any] = {
        "date": RECORDED.date,
        "commit": RECORDED.commit,
        "software": SOFTWARE,
        "hardware": HARDWARE,
        "timing": {},
        "judged_ms": tuple(100 * ratio for ratio in ratios),
        "ratios": tuple(ratios),
    }
    return LatencySession(**{**fields, **changes})


def entry(**changes: Any) -> Entry:
    """A sound entry, with some fields replaced."""
    fields: dict[str, Any] = {
        "recorded": RECORDED,
        "latency": (latency(),),
        "component_peak_bytes": {WHOLE: 512 * MIB, "denoiser": 500 * MIB},
        "counts": counts(mm=1000, add=400).beside(host_calls()),
        "ssim": 0.995,
    }
    return Entry(**{**fields, **changes})


def sample(ratio: float, standard_error: float = 0.001) -> Sample:
    """What one process would say of this ratio."""
    return Sample(math.log(ratio), standard_error)


def timing(ratio: float = 1.0, *, judged_ms: float = 100.0, pairs: int = 3) -> Timing:
    """A process whose every candidate round takes `ratio` times its reference rounds."""
    candidate_s = judged_ms / 1000
    group = Group((candidate_s / ratio,) * (pairs + 1), (candidate_s,) * pairs)
    return Timing((group,), (candidate_s,), "load 0.5")


def verdict(
    scenario: str, outcome: Outcome = Outcome.PASS, metric: str = "latency ratio", **fields: Any
) -> Verdict:
    """A verdict that says why."""
    return Verdict(scenario, metric, outcome, "says why", **fields)


def failure(outcome: Outcome, text: str, scenario: str = "") -> Verdict:
    """What a side of a comparison says of a scenario that did not run there."""
    return Verdict(scenario, RUN.name, outcome, text)


def scenario_record(
    technique: str, *outcomes: Outcome, workload: str = "storybook", **figures: Any
) -> ScenarioRecord:
    """The record of a scenario with a verdict for each outcome, and these fields.

    `peak_bytes` stands for the peak of the whole call, and a text for the reason without a remedy.
    """
    name = f"{workload}-{technique}"
    if (peak_bytes := figures.pop("peak_bytes", None)) is not None:
        figures["component_peak_bytes"] = {WHOLE: peak_bytes}
    if isinstance(why := figures.get("unsupported"), str):
        figures["unsupported"] = Reason(why)
    figures.setdefault("family", "precision")
    figures.setdefault("verdicts", [verdict(name, outcome) for outcome in outcomes])
    return ScenarioRecord(name, workload, technique, **figures)


def run_record(*records: ScenarioRecord, **fields: Any) -> RunRecord:
    """A run on the CPU that met these scenarios, with these fields."""
    defaults: dict[str, Any] = {
        "device_key": "cpu",
        "hardware": HARDWARE,
        "software": SOFTWARE,
        "scenarios": {record.id: record for record in records},
    }
    return RunRecord(**{**defaults, **fields})
