"""Saves what its docs say it saves; a claim that does not hold here is an xfail."""

import pytest

from fixtures.records.run import RunRecord, ScenarioRecord
from fixtures.scenarios import Scenario
from fixtures.suite.claims import FAILS, NOT_COMPARED, Claims

pytestmark = pytest.mark.last


def test_documented_claims(
    scenario: Scenario, observed: ScenarioRecord, claims: Claims, run_record: RunRecord
) -> None:
    """Every claim of the technique's docs, with this machine's figures."""
    if not scenario.technique.claims:
        pytest.skip("its docs claim nothing that is measured here")
    compared = [claims.compared(claim, scenario) for claim in scenario.technique.claims]
    for one in compared:
        run_record.count_claim(one.outcome)
    failing = [one.sentence for one in compared if one.outcome == FAILS]
    if failing:
        sentence = f"{scenario.id}: does not hold on this device: {'; '.join(failing)}"
        run_record.note(sentence)
        pytest.xfail(sentence)
    if all(one.outcome == NOT_COMPARED for one in compared):
        pytest.skip(f"not compared: {'; '.join(one.sentence for one in compared)}")
