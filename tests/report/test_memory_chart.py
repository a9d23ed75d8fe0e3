"""Memory on both sides of a comparison, drawn by GitHub from text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.records.outcome import Outcome
from fixtures.records.run import RunRecord
from fixtures.records.timeline import Timeline
from fixtures.records.units import GIB, MIB
from fixtures.report.memory_chart import MAX_CHARTS, POINTS, memory_charts
from tests.support.runs import run_record, scenario_record, verdict

NAME = "sd15-autocast"


def timeline(*live_bytes: int) -> Timeline:
    return Timeline(1, live_bytes, ((0, "pipeline"),), 0, {})


def run(*techniques: str, live_bytes: tuple[int, ...], outcome: Outcome | None = None) -> RunRecord:
    records = []
    for technique in techniques:
        name = f"sd15-{technique}"
        verdicts = [] if outcome is None else [verdict(name, outcome, "peak memory")]
        records.append(
            scenario_record(
                technique, workload="sd15", timeline=timeline(*live_bytes), verdicts=verdicts
            )
        )
    return run_record(*records)


@pytest.mark.parametrize(
    ("outcome", "charts"),
    [(Outcome.REGRESSION, 1), (Outcome.IMPROVEMENT, 1), (Outcome.PASS, 0), (None, 0)],
)
def test_memory_is_drawn_where_the_peak_moved(outcome: Outcome | None, charts: int) -> None:
    base = run("autocast", live_bytes=(GIB, 2 * GIB))
    head = run("autocast", live_bytes=(GIB, 4 * GIB), outcome=outcome)
    text = "\n".join(memory_charts(base, head))
    assert text.count("xychart-beta") == charts
    if charts:
        assert f'title "{NAME}: live memory of base (first line) and head, GiB"' in text
        assert 'y-axis "GiB" 0 --> 4.200' in text
        first, second = re.findall(r"line \[(.*)\]", text)
        assert max(map(float, first.split(","))) == 2
        assert max(map(float, second.split(","))) == 4


def test_a_few_scenarios_are_drawn_and_those_of_both_sides_alone() -> None:
    names = [f"t{number}" for number in range(MAX_CHARTS + 2)]
    base = run(*names, live_bytes=(MIB,))
    head = run(*names, live_bytes=(2 * MIB,), outcome=Outcome.REGRESSION)
    assert "\n".join(memory_charts(base, head)).count("```mermaid") == MAX_CHARTS
    assert memory_charts(run_record(), head) == []


@given(st.lists(st.integers(0, 2**50), min_size=1, max_size=300))
def test_every_line_has_as_many_points_and_keeps_its_peak(live_bytes: list[int]) -> None:
    base = run("autocast", live_bytes=tuple(live_bytes))
    head = run("autocast", live_bytes=tuple(live_bytes), outcome=Outcome.REGRESSION)
    text = "\n".join(memory_charts(base, head))
    unit = GIB if max(live_bytes) >= GIB else MIB
    lines = re.findall(r"line \[(.*)\]", text)
    assert len(lines) == 2
    for line in lines:
        points = [float(point) for point in line.split(",")]
        assert len(points) == POINTS
        assert max(points) == pytest.approx(max(live_bytes) / unit, abs=0.001)


def test_a_name_ends_no_quotes() -> None:
    record = scenario_record(
        'x"\n```\n@name',
        workload="sd15",
        timeline=timeline(MIB),
        verdicts=[verdict("sd15", Outcome.REGRESSION, "peak memory")],
    )
    lines = memory_charts(run_record(record), run_record(record))
    assert [line for line in lines if '"' in line and line.count('"') != 2] == []
    assert sum(line.startswith("```") for line in lines) == 2
