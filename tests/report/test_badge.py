"""The badge: never green where something failed, or nothing was judged."""

from __future__ import annotations

import json

import pytest

from fixtures.records.outcome import Outcome
from fixtures.report.badge import badge
from tests.support.runs import run_record, scenario_record

PASS, FAIL, OPEN = Outcome.PASS, Outcome.REGRESSION, Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("outcomes", "passed", "message", "color"),
    [
        ([PASS, PASS, Outcome.IMPROVEMENT], True, "3 passed", "brightgreen"),
        ([PASS, FAIL, OPEN], False, "1 failed", "red"),
        ([PASS, OPEN], True, "1 passed, 1 undecided", "yellow"),
        ([PASS, PASS], False, "run failed", "red"),
        ([], True, "nothing judged", "lightgrey"),
        ([Outcome.NOT_JUDGED, Outcome.UNSUPPORTED], True, "nothing judged", "lightgrey"),
    ],
)
def test_the_badge_says_what_the_run_did(
    outcomes: list[Outcome], passed: bool, message: str, color: str
) -> None:
    records = (scenario_record(f"t{number}", one) for number, one in enumerate(outcomes))
    said = json.loads(badge(run_record(*records), strict=False, passed=passed))
    assert said == {
        "schemaVersion": 1,
        "label": "performance",
        "message": message,
        "color": color,
    }


def test_the_undecided_fail_where_the_run_is_strict() -> None:
    run = run_record(scenario_record("bf16", OPEN))
    assert json.loads(badge(run, strict=True, passed=False))["message"] == "1 failed"
