"""Numbers and nouns agree; a ratio names what it is a ratio to."""

from __future__ import annotations

import pytest

from fixtures.records.timing import Interval
from fixtures.report.words import counted, reference_of
from tests.support.runs import scenario_record


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0 scenarios"), (1, "1 scenario"), (2, "2 scenarios"), (1000, "1,000 scenarios")],
)
def test_a_noun_agrees_with_its_number(number: int, words: str) -> None:
    assert counted(number, "scenario") == words


def test_fp32_is_timed_against_the_control_workload_and_the_others_against_fp32() -> None:
    assert reference_of(scenario_record("fp32")) == "the control workload"
    assert reference_of(scenario_record("fp16", speedup=Interval(1.0, 0.9, 1.1))) == "fp32"
