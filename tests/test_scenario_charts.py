"""Charts of one scenario are there when there is something to draw, and show what they should."""

from __future__ import annotations

import base64
import math

import pytest

from fixtures.report.record import ScenarioRecord
from fixtures.report.scenario_charts import MOST_HOLDERS, memory, rounds
from fixtures.statistics import Group
from fixtures.timeline import Timeline

MIB = 2**20


def svg(uri: str | None) -> str:
    assert uri is not None
    kind, _, data = uri.partition(",")
    assert kind == "data:image/svg+xml;base64"
    return base64.b64decode(data).decode()


def record(**figures: object) -> ScenarioRecord:
    made = ScenarioRecord("storybook-fp16", "storybook", "fp$16", "precision")
    for name, value in figures.items():
        setattr(made, name, value)
    return made


def timeline(**holders: int) -> Timeline:
    return Timeline(8, (5 * MIB, 9 * MIB), ((0, "pipeline"), (8, "vae")), 8, holders)


def test_nothing_is_drawn_of_nothing() -> None:
    assert rounds(record()) is None
    assert rounds(record(rounds_ms=[[[]]])) is None
    assert memory(record()) is None
    assert memory(record(timeline=Timeline(1, (), (), 0, {}))) is None


def test_every_round_is_a_point_and_processes_are_parted() -> None:
    group = Group((0.1, 0.11, 0.12), (0.2, 0.21))
    assert group.in_turns() == [0.1, 0.2, 0.11, 0.21, 0.12]
    turns = [ms * 1000 for ms in group.in_turns()]
    one = svg(rounds(record(rounds_ms=[[turns, turns]])))
    two = svg(rounds(record(rounds_ms=[[turns], [turns]])))
    assert one != two
    assert len(two) > len(one)  # the line between the processes


@pytest.mark.parametrize("broken", [math.nan, math.inf, 0.0, -1.0])
def test_rounds_that_are_no_times_are_left_out(broken: float) -> None:
    assert svg(rounds(record(rounds_ms=[[[1.0, broken, 2.0]]])))


def test_equal_rounds_can_be_drawn() -> None:
    assert svg(rounds(record(rounds_ms=[[[1.0, 1.0, 1.0]]])))


def test_the_same_record_gives_the_same_chart() -> None:
    one = record(rounds_ms=[[[1.0, 2.0, 1.5]]], timeline=timeline(vae=9 * MIB))
    assert rounds(one) == rounds(one)
    assert memory(one) == memory(one)


def test_the_small_holders_of_the_peak_are_added_up() -> None:
    few = {f"holder{number}": MIB for number in range(MOST_HOLDERS)}
    drawn = svg(memory(record(timeline=timeline(**few))))
    more = svg(memory(record(timeline=timeline(**few, tiny=1, small=2))))
    assert len(more) > len(drawn)


def test_a_holder_s_name_is_text() -> None:
    assert svg(memory(record(timeline=timeline(**{"$x_1$ <b>": 9 * MIB}))))
