"""The chart for choosing: the front holds who is not beaten, and words stay words."""

from __future__ import annotations

import base64
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.metrics.peak_memory import PEAK_MEMORY
from fixtures.metrics.images import SSIM
from fixtures.records.run import ScenarioRecord
from fixtures.report.charts import (
    MAX_NAMED,
    choice_chart,
    pareto,
    quality_chart,
    time_ms,
    trend_chart,
)
from fixtures.report.svg import LIMIT
from tests.support.runs import MIB, scenario_record

FIGURES = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 50)), max_size=12)


def record(name: str, wall_ms: float | None, peak: int | None, **more: Any) -> ScenarioRecord:
    return scenario_record(name, wall_ms=wall_ms, peak_bytes=peak, **more)


def drawn(*records: ScenarioRecord) -> str:
    uri = choice_chart(records)
    assert uri is not None
    return base64.b64decode(uri.partition(",")[2]).decode()


def test_the_front_holds_the_fastest_and_whoever_needs_less_than_all_faster_ones() -> None:
    fast, small, beaten = (
        record("fast", 1, 9 * MIB),
        record("small", 5, MIB),
        record("no", 6, 2 * MIB),
    )
    assert pareto([beaten, small, fast, record("unknown", None, MIB)]) == [fast, small]


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(FIGURES)
def test_nobody_on_the_front_is_beaten_and_everybody_else_is(
    figures: list[tuple[int, int]],
) -> None:
    records = [record(str(n), float(t), m * MIB) for n, (t, m) in enumerate(figures)]
    front = pareto(records)

    def beaten(one: ScenarioRecord) -> bool:
        mine = (time_ms(one), one.peak_bytes)
        return any(
            (time_ms(two) or 0) <= (mine[0] or 0) and (two.peak_bytes or 0) <= (mine[1] or 0)
            for two in front
            if two is not one
        )

    assert not any(beaten(one) for one in front)
    assert all(beaten(one) for one in records if one not in front)


def test_without_figures_there_is_no_chart() -> None:
    assert choice_chart([record("a", None, MIB), record("b", 1.0, None)]) is None


def test_a_simulated_run_is_drawn_over_its_roofline_bound() -> None:
    simulated = record("a", None, 3 * 2**30, bound_ms=12.0)
    assert time_ms(simulated) == 12.0
    assert "roofline bound of the latency" in drawn(simulated)
    assert "roofline" not in drawn(record("b", 1.0, MIB))


def test_words_from_outside_are_no_markup_and_no_formula() -> None:
    svg = drawn(record("<script>$x$</script>", 1.0, MIB))
    assert "<script" not in svg
    assert ElementTree.fromstring(svg).tag.endswith("svg")


def test_of_many_techniques_only_the_best_are_named() -> None:
    # The first is the fastest and the smallest.
    crowd = [record(f"t{n}", 1.0 + n, (1 + n) * MIB) for n in range(MAX_NAMED + 1)]
    svg = drawn(*crowd)
    assert "1  t0" in svg
    assert "t7" not in svg
    assert "not on the line" in svg
    assert "t7" in drawn(*crowd[:-1])


def test_what_a_picture_costs_is_drawn_where_pictures_lose_something() -> None:
    same, faster = record("fp32", 9.0, MIB, ssim=1.0), record("fp16", 3.0, MIB, ssim=0.99995)
    assert quality_chart([same, faster, record("other", 1.0, MIB)]) is None
    cached = record("cache.threshold=0.1", 2.0, MIB, ssim=0.97)
    more = record("cache.threshold=0.2", 1.0, MIB, ssim=0.91)
    one, two = (_text(quality_chart([same, *swept]) or "") for swept in ([cached], [cached, more]))
    assert "cache.threshold=0.1  0.9700" in one
    assert "1 - SSIM with fp32" in one
    # The two settings of one technique are joined.
    assert "stroke-dasharray" not in one
    assert "stroke-dasharray" in two


def test_a_trend_draws_every_figure_and_marks_where_the_software_changed() -> None:
    series = [("peak memory", PEAK_MEMORY, (1.0 * MIB, None, 3.0 * MIB))]
    plain, marked = (_text(trend_chart(series, places)) for places in ([], [2]))
    assert LIMIT not in plain
    assert LIMIT in marked
    assert "MiB" in plain
    two = _text(trend_chart([*series, ("SSIM", SSIM, (None, 0.9, 0.8))], []))
    assert "SSIM" in two


def test_a_trend_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="figure"):
        trend_chart([], [])


def _text(uri: str) -> str:
    return base64.b64decode(uri.partition(",")[2]).decode()
