"""Saves what its docs say it saves; a claim that does not hold here is an xfail."""

import pytest

from fixtures.metrics.peak_memory import PEAK_MEMORY
from fixtures.records.run import WHOLE, RunRecord, ScenarioRecord
from fixtures.scenarios import Scenario
from fixtures.suite.claims import FAILS, HOLDS, NOT_COMPARED, Claims

pytestmark = pytest.mark.last

GB = 10**9
AT_MOST_BYTES = {
    "sd15-4k-vae_tiling": 8 * GB,
    "sd15-sequential_cpu_offload": 3 * GB,
    "sd15-attention_slicing": 3.2 * GB,
}
"""By scenario: docs optimization/memory of 2024, the last one "Memory and speed" of 2022."""


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


def test_published_figures(
    scenario: Scenario, observed: ScenarioRecord, run_record: RunRecord
) -> None:
    """The peak memory that its docs promise."""
    if scenario.id not in AT_MOST_BYTES:
        pytest.skip("its docs promise no figure of memory")
    promised, ours = AT_MOST_BYTES[scenario.id], observed.component_peak_bytes[WHOLE]
    sentence = (
        f"{scenario.id}: documented at most {PEAK_MEMORY.format(promised)}, "
        f"here {PEAK_MEMORY.format(ours)} ({PEAK_MEMORY.change(ours, promised)})"
    )
    run_record.note(sentence)
    run_record.count_claim(HOLDS if ours <= promised else FAILS)
    if ours > promised:
        pytest.xfail(f"does not hold on this device: {sentence}")
