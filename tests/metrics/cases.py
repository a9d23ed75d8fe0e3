"""Cases to judge: a sound entry, and a newer torch than it was recorded with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fixtures.metrics.latency_tolerances import RATIO_TOLERANCE, SIDE_BY_SIDE
from fixtures.records.baselines import Entry
from fixtures.verdicts.case import Case
from fixtures.verdicts.limits import Tolerance
from tests.support.runs import HARDWARE, SOFTWARE, entry, latency

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


def timed(ratios: Sequence[float], **changes: Any) -> Entry:
    """An entry whose processes saw these ratios, and equal times."""
    return entry(latency=(latency(ratios, judged_ms=(100.0,) * len(ratios)),), **changes)
