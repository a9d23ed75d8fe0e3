"""Charts of one scenario: there when there is something to draw, and every value in its place."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.metrics import RATIO
from fixtures.report.record import ScenarioRecord
from fixtures.report.scenario_charts import MOST_HOLDERS, REST, Scale, memory, ratios, rounds
from fixtures.statistics import Group
from fixtures.timeline import Timeline
from fixtures.verdicts import Outcome, Verdict

MIB = 2**20
BROKEN = [math.nan, math.inf, 0.0, -1.0]


def record(**figures: object) -> ScenarioRecord:
    made = ScenarioRecord("storybook-fp16", "storybook", "fp16", "precision")
    for name, value in figures.items():
        setattr(made, name, value)
    return made


def timeline(**holders: int) -> Timeline:
    return Timeline(8, (5 * MIB, 10 * MIB), ((0, "start"), (0, "empty"), (8, "vae")), 8, holders)


def test_a_scale_puts_its_ends_at_its_ends() -> None:
    scale = Scale(10, 20, 100, 0)
    assert (scale(10), scale(20), scale(15)) == (100, 0, 50)


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0, 100, ["0", "25", "50", "75", "100"]),
        (0.97, 1.03, ["0.98", "1.00", "1.02"]),
        (0, 1, ["0.00", "0.25", "0.50", "0.75", "1.00"]),
        (900, 2100, ["1,000", "1,500", "2,000"]),
    ],
)
def test_ticks_are_round_and_have_the_digits_they_need(
    low: float, high: float, texts: list[str]
) -> None:
    assert [text for _, text in Scale(low, high, 0, 100).ticks] == texts


@given(low=st.floats(-1e6, 1e6), width=st.floats(1e-6, 1e6))
def test_ticks_lie_on_the_line_and_differ(low: float, width: float) -> None:
    ticks = Scale(low, low + width, 0, 100).ticks
    assert all(-0.1 <= place <= 100.1 for place, _ in ticks)
    assert len({place for place, _ in ticks}) == len(ticks)


def test_nothing_is_drawn_of_nothing() -> None:
    assert ratios(record()) is None
    assert rounds(record()) is None
    assert rounds(record(rounds_ms=[[[]]])) is None
    assert memory(record()) is None
    assert memory(record(timeline=Timeline(1, (), (), 0, {}))) is None
    assert memory(record(timeline=Timeline(1, (0,), ((0, "start"),), 0, {}))) is None


# Ratios


def test_a_larger_ratio_lies_further_right_and_so_does_the_limit() -> None:
    one = record(ratios=[1.0, 1.2], baseline_ratios=[0.9])
    verdict = Verdict(one.id, RATIO.name, Outcome.PASS, "", 1.0, 0.9, 1.1)
    one.verdicts = [verdict, Verdict(one.id, "latency", Outcome.PASS, "", 1.0, 0.9, 700.0)]
    chart = ratios(one)
    assert chart is not None
    (_, _, mine), (_, _, before) = chart.rows
    assert [text for _, text in mine] == ["x1.000", "x1.200"]
    (limit,) = chart.limits
    assert before[0][0] < mine[0][0] < limit < mine[1][0]


@pytest.mark.parametrize("broken", BROKEN)
def test_ratios_that_are_none_are_left_out(broken: float) -> None:
    chart = ratios(record(ratios=[1.0, broken], baseline_ratios=[broken]))
    assert chart is not None
    assert [len(points) for _, _, points in chart.rows] == [1, 0]
    assert ratios(record(ratios=[broken])) is None


# Rounds


def test_every_round_is_a_point_of_its_side_and_processes_are_parted() -> None:
    group = Group((0.1, 0.11, 0.12), (0.2, 0.21))
    assert group.in_turns() == [0.1, 0.2, 0.11, 0.21, 0.12]
    turns = [second * 1000 for second in group.in_turns()]
    chart = rounds(record(rounds_ms=[[turns, turns], [turns]]))
    assert chart is not None
    reference, candidate = chart.points
    assert (len(reference), len(candidate), len(chart.processes)) == (9, 6, 1)
    # Slower is higher up, later is further right.
    assert max(y for _, y in candidate) < min(y for _, y in reference)
    assert [x for x, _ in reference] == sorted(x for x, _ in reference)
    assert chart.opponent == "yardstick"


def test_the_bars_hold_every_round() -> None:
    chart = rounds(record(rounds_ms=[[[100.0, 200.0, 100.0]]]))
    assert chart is not None
    (reference,), (candidate,) = chart.bars
    assert (reference[2], candidate[2]) == (130.0, 65.0)  # two rounds, one round


@pytest.mark.parametrize("broken", BROKEN)
def test_rounds_that_are_no_times_are_left_out(broken: float) -> None:
    chart = rounds(record(rounds_ms=[[[1.0, broken, 2.0]]]))
    assert chart is not None
    assert [len(side) for side in chart.points] == [2, 0]


def test_equal_rounds_can_be_drawn() -> None:
    assert rounds(record(rounds_ms=[[[1.0, 1.0, 1.0]]])) is not None


# Memory


def test_the_peak_is_the_highest_place_and_empty_phases_are_left_out() -> None:
    chart = memory(record(timeline=timeline(vae=10 * MIB)))
    assert chart is not None
    assert chart.unit == "MiB"
    assert chart.peak[1] == min(y for _, y in chart.outline)
    assert [name for _, name in chart.phases] == ["empty", "vae"]
    ((top, height, text),) = chart.holders
    assert (top, text) == (chart.peak[1], "vae 10.00 MiB")
    assert top + height == chart.scale(0)


def test_the_small_holders_of_the_peak_are_added_up() -> None:
    few = {f"holder{number}": MIB for number in range(MOST_HOLDERS)}
    chart = memory(record(timeline=timeline(**few, large=2 * MIB, tiny=1)))
    assert chart is not None
    texts = [text for _, _, text in chart.holders]
    assert texts[0] == "large 2.00 MiB"
    assert texts[-1] == f"{REST} 1.00 MiB"
    assert len(texts) == MOST_HOLDERS + 1
