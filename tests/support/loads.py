"""Both sides of a comparison of what loading costs."""

from __future__ import annotations

from fixtures.records.load import Load
from fixtures.records.run import ScenarioRecord
from fixtures.verdicts.case import SideCase
from fixtures.verdicts.compared import Sides
from fixtures.verdicts.limits import Limits

FP32 = "storybook-fp32"


def record(load: Load | None, not_loaded: str = "") -> ScenarioRecord:
    return ScenarioRecord(FP32, "storybook", "fp32", "precision", load=load, not_loaded=not_loaded)


def sides(base: Load | str, head: Load | str, limits: Limits | None = None) -> Sides:
    """Of two records that have these figures, or why there are none."""
    records = [record(None, one) if isinstance(one, str) else record(one) for one in (base, head)]
    return Sides(SideCase(FP32, None, {}), records[0], records[1], limits or Limits())
