"""The tables of docs/power.md: what they say of given rates, and that the page holds them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from fixtures.studies.power.markdown import (
    BEGIN,
    END,
    GOALS,
    PENDING,
    false_alarms,
    held,
    markdown,
)
from fixtures.studies.power.rates import RATES, RatedLevel, Rates
from fixtures.studies.power.samples import Header, Level
from tests.studies.power.known import rated_level

REPOSITORY = Path(__file__).parent.parent.parent.parent
CALL_5 = Level("compute", 0.05, "call")
SLEEP_5 = Level("sleep", 0.05, "call")
CALL_10 = Level("compute", 0.10, "call")
STEP_10 = Level("compute", 0.10, "scheduler")

IN_95 = "5 % slower as a whole: seen in at least 95 % of"


def text_of(*rates: RatedLevel) -> str:
    return markdown(Rates(Header("storybook-fp32", {"steps": 3}, {}, {}), 500, {}, rates))


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


GOOD = (
    rated_level(Level(), 0.005, undecided=0.05),
    rated_level(Level(), 0.0, baseline_loaded=True),
    rated_level(CALL_5, 0.95, run=0.95),
    rated_level(SLEEP_5, 1.0, run=1.0),
    rated_level(CALL_10, 1.0, run=1.0),
)


def test_goals_are_reached_at_their_limits() -> None:
    rows = rows_of(text_of(*GOOD), "Against the goals")
    assert len(rows) == len(GOALS)
    for quiet, loaded in rows.values():
        assert quiet.startswith("reached: ")
        assert loaded == "not sampled"


@pytest.mark.parametrize(
    ("missed", "goals"),
    [
        (rated_level(Level(), 0.006, baseline_loaded=True), ["unchanged: false"]),
        (rated_level(Level(), 0.0, undecided=0.06), ["unchanged: undecided"]),
        (
            rated_level(SLEEP_5, 0.94, run=1.0),
            [f"{IN_95} scenarios"],
        ),
        (
            rated_level(SLEEP_5, 1.0, run=0.94),
            [f"{IN_95} runs"],
        ),
        (rated_level(CALL_10, 0.999, run=1.0), ["10 % slower"]),
        (rated_level(CALL_5, 0.0, baseline_loaded=True), []),
        (rated_level(STEP_10, 0.0), []),
    ],
)
def test_the_worst_level_decides_whether_a_goal_is_reached(
    missed: RatedLevel, goals: list[str]
) -> None:
    rows = rows_of(text_of(*GOOD, missed), "Against the goals")
    not_reached = [goal for goal, cells in rows.items() if cells[0].startswith("not reached: ")]
    assert len(not_reached) == len(goals)
    assert all(goal.startswith(start) for goal, start in zip(not_reached, goals, strict=True))


def test_all_processes_together_bound_the_false_alarms() -> None:
    quiet = rated_level(Level(), 0.0, independent=150)
    loaded = rated_level(Level(loaded=True), 0.0, independent=49)
    again = rated_level(Level(loaded=True), 1.0, independent=49, baseline_loaded=True)
    said = false_alarms([quiet, loaded, again])
    assert "199 decisions without a common process bound the rate by 1.5 %" in said
    assert said.endswith("A bound of 0.5 % takes 598 without a false alarm.")
    assert "Over both machines 0 % " in said
    enough = false_alarms([rated_level(Level(), 0.0, independent=598)])
    assert "bound the rate by 0.5 %" in enough
    assert "takes" not in enough
    assert "Over both machines 10.0 % " in false_alarms([rated_level(Level(), 0.1)])
    assert "not sampled often enough" in false_alarms([rated_level(CALL_5, 1.0)])


def complaint(page: str, stored: Rates | None) -> str | None:
    """Why the page does not hold what was replayed, if it does not."""
    text = held(page)
    if stored is None:
        return None if text == PENDING else "the page has figures of no replay"
    return None if text == markdown(stored) else "the page has other figures than power.json"


def current(path: Path) -> Rates | None:
    """The committed rates; None where they are of samples that are no longer read."""
    return RATES.read(path) if '"call_slower"' in path.read_text(encoding="utf-8") else None


def test_the_page_holds_the_output_of_the_replay() -> None:
    page = (REPOSITORY / "docs/power.md").read_text(encoding="utf-8")
    assert complaint(page, current(REPOSITORY / "docs/power/power.json")) is None


def test_a_page_with_other_figures_is_found_out(tmp_path: Path) -> None:
    rates = Rates(Header("storybook-fp32", {}, {}, {}), 500, {}, GOOD)
    path = tmp_path / "power.json"
    path.write_text(RATES.dump(rates))
    page = f"# Title\n\n{BEGIN}\n\n{markdown(rates)}\n\n{END}\n\nMore.\n"
    assert complaint(page, current(path)) is None
    assert complaint(page.replace("95.0 %", "96.0 %"), current(path)) is not None
    pending = f"{BEGIN}\n{PENDING}\n{END}"
    assert complaint(pending, current(path)) is not None
    path.write_text("{}")
    assert complaint(pending, current(path)) is None
    assert complaint(page, current(path)) is not None


@pytest.mark.parametrize("page", ["", BEGIN, f"{END}{BEGIN}", f"{BEGIN}{END}{END}"])
def test_a_page_without_its_marks_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="once each"):
        held(page)
