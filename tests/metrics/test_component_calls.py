"""Another number of calls fails in both directions, and samples are counted through batches."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from fixtures.metrics.component_calls import COMPONENT_CALLS, METRIC, samples_of
from fixtures.records.outcome import Outcome
from fixtures.verdicts.case import Case, SideCase
from fixtures.verdicts.compared import Sides
from fixtures.verdicts.limits import Limits
from tests.support.runs import entry, scenario_record

STORED = {"denoiser (batch of 2)": 20, "vae (batch of 1)": 1}


@pytest.mark.parametrize(
    ("now", "outcome"),
    [
        (STORED, Outcome.PASS),
        ({**STORED, "denoiser (batch of 2)": 10}, Outcome.REGRESSION),
        ({**STORED, "denoiser (batch of 2)": 19}, Outcome.REGRESSION),
        ({**STORED, "denoiser (batch of 2)": 21}, Outcome.REGRESSION),
        ({"denoiser (batch of 2)": 20}, Outcome.REGRESSION),
        ({"denoiser (batch of 1)": 20, "vae (batch of 1)": 1}, Outcome.REGRESSION),
    ],
)
def test_fewer_calls_fail_as_more_do(now: Mapping[str, int], outcome: Outcome) -> None:
    base, head = (scenario_record("fp16", figures={COMPONENT_CALLS: of}) for of in (STORED, now))
    stored = entry(figures={COMPONENT_CALLS: STORED})
    [verdict] = METRIC.judge(Case(base.id, stored, {}), head)
    assert verdict.outcome is outcome
    figures = METRIC.compare(Sides(SideCase(base.id, stored, {}), base, head, Limits(steps=20)))
    assert {figure.verdict.outcome for figure in figures} == {outcome}


def test_as_many_samples_in_other_batches_are_as_much_work() -> None:
    of_two, of_one = {"denoiser (batch of 2)": 3}, {"denoiser (batch of 1)": 6}
    assert samples_of(of_two) == samples_of(of_one) == {"denoiser": 6}
    assert samples_of({"scheduler": 4}) == {"scheduler": 4}
