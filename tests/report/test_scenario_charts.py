"""Charts of one scenario: there when there is something to draw, and every value in its place."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.metrics.latency_verdicts import RATIO
from fixtures.records.run import ScenarioRecord
from fixtures.records.timeline import AtPeak, Timeline
from fixtures.report.scenario_charts import MAX_HOLDERS, REST, Scale, memory, ratios
from tests.support.runs import MIB, scenario_record, timing, verdict

BROKEN = [math.nan, math.inf, 0.0, -1.0]


def simulated(**held_bytes: int) -> ScenarioRecord:
    phases = ((0, "start"), (0, "empty"), (8, "vae"))
    timeline = Timeline(8, (5 * MIB, 10 * MIB), phases, 8)
    return scenario_record("fp16", timeline=timeline, at_peak=AtPeak("vae", held_bytes))


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
    assert ratios(scenario_record("fp16")) is None
    assert memory(scenario_record("fp16")) is None
    assert memory(scenario_record("fp16", timeline=Timeline(1, (), (), 0))) is None
    assert memory(scenario_record("fp16", timeline=Timeline(1, (0,), ((0, "start"),), 0))) is None


# Ratios


def test_a_larger_ratio_lies_further_right_and_so_does_the_limit() -> None:
    one = scenario_record("fp16", timings=[timing(1.0), timing(1.2)], baseline_ratios=[0.9])
    one.verdicts = [
        verdict(one.id, metric=RATIO.name, limit=1.1),
        verdict(one.id, metric=RATIO.name),
        verdict(one.id, metric="latency", limit=700.0),
    ]
    chart = ratios(one)
    assert chart is not None
    (_, _, mine), (_, _, before) = chart.rows
    assert [text for _, text in mine] == ["x1.000", "x1.200"]
    (limit,) = chart.limits
    assert before[0][0] < mine[0][0] < limit < mine[1][0]


@pytest.mark.parametrize("broken", BROKEN)
def test_stored_ratios_and_limits_that_are_none_are_left_out(broken: float) -> None:
    one = scenario_record("fp16", timings=[timing()], baseline_ratios=[broken, 1.1])
    one.verdicts = [verdict(one.id, metric=RATIO.name, limit=broken)]
    chart = ratios(one)
    assert chart is not None
    assert [len(points) for _, _, points in chart.rows] == [1, 1]
    assert chart.limits == []


# Memory


def test_the_peak_is_the_highest_place_and_empty_phases_are_left_out() -> None:
    chart = memory(simulated(vae=10 * MIB))
    assert chart is not None
    assert chart.unit == "MiB"
    assert chart.peak[1] == min(y for _, y in chart.outline)
    assert [name for _, name in chart.phases] == ["empty", "vae"]
    ((top, height, text),) = chart.holders
    assert (top, text) == (chart.peak[1], "vae 10.00 MiB")
    assert top + height == chart.scale(0)


def test_the_small_holders_of_the_peak_are_added_up() -> None:
    few = {f"holder{number}": MIB for number in range(MAX_HOLDERS)}
    chart = memory(simulated(**few, large=2 * MIB, tiny=1))
    assert chart is not None
    texts = [text for _, _, text in chart.holders]
    assert texts[0] == "large 2.00 MiB"
    assert texts[-1] == f"{REST} 1.00 MiB"
    assert len(texts) == MAX_HOLDERS + 1


def test_a_phase_that_is_too_short_for_its_name_has_none() -> None:
    live, phases = (MIB,) * 100, ((0, "pipeline"), (1, "denoiser"), (50, "vae"))
    chart = memory(scenario_record("fp16", timeline=Timeline(1, live, phases, 0)))
    assert chart is not None
    assert [name for _, name in chart.phases] == ["", "denoiser", "vae"]
