"""The tables of docs/power.md: what they say of given rates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from fixtures.studies.power.markdown import markdown
from fixtures.studies.power.rates import RATES, RatedLevel, Rates
from fixtures.studies.power.samples import Header, Level
from tests.studies.power.known import rated_level

REPOSITORY = Path(__file__).parent.parent.parent.parent
CALL_5 = Level("compute", 0.05, "call")
STEP_10 = Level("compute", 0.10, "scheduler")


def text_of(*rates: RatedLevel) -> str:
    return markdown(Rates(Header("storybook-fp32", {"steps": 3}, {}, {}), 500, rates))


def rows_of(text: str, title: str) -> dict[str, Sequence[str]]:
    """The cells of a section's rows by the first cell."""
    section = text.partition(f"### {title}\n")[2].partition("### ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:1] == "|"]
    return {first: rest for first, *rest in rows[2:]}


def test_what_is_seen_stands_by_what_is_slower_and_says_what_was_not_sampled() -> None:
    text = text_of(
        rated_level(Level(), 0.0),
        rated_level(CALL_5, 0.96, undecided=0.03, run=1.0, independent=40),
        rated_level(Level("compute", 0.05, "call", loaded=True), 0.5, run=0.999),
        rated_level(STEP_10, 0.0),
        rated_level(STEP_10, 1.0, baseline_loaded=True),
        rated_level(CALL_5, 0.2, rule="another rule"),
    )
    assert text.startswith("`storybook-fp32`, 500 processes.")
    lines = text.partition("### What is seen")[2].partition("###")[0].splitlines()
    call, step = (line for line in lines if line.startswith(("| call", "| scheduler")))
    quiet = "96.0 % [96.0, 96.0], else undecided in 3.0 % (40 processes) | 100 %"
    loaded = "50.0 % [50.0, 50.0] (10 processes) | 99.9 %"
    assert call == f"| call | 5 % compute | 5.0 % | {quiet} | {loaded} |"
    nothing = "0 % [0.0, 0.0] (10 processes) | 0 % | not sampled | not sampled |"
    assert step == f"| scheduler | 10 % compute | 10.0 % | {nothing}"
    assert rows_of(text, "Beside other rules")["call 5 % slower, compute"] == (
        ["as it is, loaded", "50.0 %", "not sampled"]
    )


def test_unchanged_code_has_a_row_per_baseline_and_machine() -> None:
    text = text_of(
        rated_level(Level(), 0.0, undecided=0.02, run=0.01, independent=190),
        rated_level(Level(loaded=True), 0.1, baseline_loaded=True),
    )
    rows = rows_of(text, "Unchanged code")
    assert rows["as it is, as it is"] == (
        ["190", "0 % [0.0, 0.0]", "2.0 % [2.0, 2.0]", "12 s, 24 s", "1.0 %"]
    )
    assert rows["loaded, loaded"][1] == "10.0 % [10.0, 10.0]"


@pytest.mark.parametrize("share", [0.0001, 0.9999])
def test_a_rate_is_all_or_nothing_only_where_it_is(share: float) -> None:
    row = rows_of(text_of(rated_level(Level(), share)), "Unchanged code")["as it is, as it is"]
    assert row[1].startswith("0.1 %" if share < 0.5 else "99.9 %")


def test_all_processes_together_bound_the_false_alarms() -> None:
    quiet = rated_level(Level(), 0.0, independent=150)
    loaded = rated_level(Level(loaded=True), 0.0, independent=49)
    again = rated_level(Level(loaded=True), 1.0, independent=49, baseline_loaded=True)
    said = text_of(quiet, loaded, again)
    assert "199 decisions without a common process bound the rate by 1.5 %" in said
    assert said.endswith("A bound of 0.5 % takes 598 without a false alarm.")
    enough = text_of(rated_level(Level(), 0.0, independent=598))
    assert "bound the rate by 0.5 %" in enough
    assert "takes" not in enough
    assert "Over both machines 10.0 % " in text_of(rated_level(Level(), 0.1))
    assert "not sampled often enough" in text_of(rated_level(CALL_5, 1.0))


def test_every_row_of_the_page_is_one_of_the_replay() -> None:
    page = (REPOSITORY / "docs/power.md").read_text(encoding="utf-8")
    rates = page.partition("## Rates\n")[2].partition("\n## ")[0]
    rows = {line for line in rates.splitlines() if line.startswith("|")}
    replayed = markdown(RATES.read(REPOSITORY / "docs/power/power.json")).splitlines()
    assert len(rows) > 10
    assert rows <= {*replayed}
