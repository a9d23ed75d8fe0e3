"""Cases to judge: a sound entry, and a newer torch than it was recorded with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fixtures.metrics import peak_memory
from fixtures.metrics.case import Case, SideCase
from fixtures.metrics.latency_tolerances import RATIO_TOLERANCE, SIDE_BY_SIDE
from fixtures.metrics.limits import Tolerance
from fixtures.records.baselines import Entry
from fixtures.records.outcome import Verdict, worst
from fixtures.records.run import ScenarioRecord
from fixtures.records.units import MemorySource
from tests.support.runs import HARDWARE, SOFTWARE, entry, latency, scenario_record

SCENARIO = "storybook-fp16"
NEWER = {**SOFTWARE, "torch": "2.13.0"}
ELSEWHERE = {"processor": "Testron 9001", "threads": 1}
OTHER_SETS = {**ELSEWHERE, "instruction_sets": ["avx2"]}


TOLERANCE = Tolerance(SIDE_BY_SIDE, RATIO_TOLERANCE.elsewhere)
"""As narrow as any, so that the same figures serve every judgement."""


def case(**changes: Any) -> Case:
    """A case with some fields replaced."""
    fields: dict[str, Any] = {
        "scenario": SCENARIO,
        "entry": entry(),
        "software": NEWER,
        "hardware": HARDWARE,
        "tolerance": TOLERANCE,
    }
    return Case(**{**fields, **changes})


def side_case(base: ScenarioRecord | None = None, **changes: Any) -> SideCase:
    """A case of a comparison, with base's record of the figures that `entry` has."""
    sound = entry()
    base = base or scenario_record(
        "fp16", counts=sound.counts, component_peak_bytes=sound.component_peak_bytes
    )
    return SideCase(SCENARIO, None, NEWER, base=base, **changes)


def timed(ratios: Sequence[float], **changes: Any) -> Entry:
    """An entry whose processes saw these ratios, and equal times."""
    return entry(latency=(latency(ratios, judged_ms=(100.0,) * len(ratios)),), **changes)


def judged_peak(on: Case, peaks: Mapping[str, Any], source: MemorySource = "ledger") -> Verdict:
    """The worst verdict on a call with these peaks by component."""
    record = scenario_record("fp16", component_peak_bytes=peaks)
    return worst(peak_memory.METRIC.judge(replace(on, memory_source=source), record))
