"""Saves what its docs say it saves; a claim that does not hold here is an xfail."""

import pytest

from fixtures.catalogue.matrix import Scenario
from fixtures.records.run import FAILS, NOT_COMPARED, ScenarioRecord
from fixtures.suite.measurements import Claims
from fixtures.suite.session import PerfSession

pytestmark = pytest.mark.last


def test_documented_claims(
    scenario: Scenario, observed: ScenarioRecord, claims: Claims, perf: PerfSession
) -> None:
    """Every claim of the technique's docs, with this machine's figures."""
    if not scenario.technique.claims:
        pytest.skip("its docs claim nothing that is measured here")
    compared = [claims.compared(claim, scenario) for claim in scenario.technique.claims]
    for result in compared:
        perf.run.count_claim(result.outcome)
    failing = [result.sentence for result in compared if result.outcome == FAILS]
    if failing:
        sentence = f"{scenario.id}: does not hold on this device: {'; '.join(failing)}"
        perf.run.note(sentence)
        pytest.xfail(sentence)
    if all(result.outcome == NOT_COMPARED for result in compared):
        pytest.skip(f"not compared: {'; '.join(result.sentence for result in compared)}")
