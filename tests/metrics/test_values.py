"""What two sides of a twin compute: equal, apart by rounding, or apart, and from where on."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fixtures.metrics import values
from fixtures.metrics.case import SideCase
from fixtures.metrics.values import PARAMETERS, ROUNDING, differences, matched, values_beside
from fixtures.records.outcome import Outcome, Verdict
from fixtures.report.comparison import texts_of
from tests.support.runs import scenario_record

STEPS = np.random.default_rng(0).standard_normal((2, 4, 4)).astype(np.float32)
BASE: dict[str, Any] = {"step 1": STEPS[0], "step 2": STEPS[1], PARAMETERS: ["a", "b"]}
SPREAD = float(STEPS[1].std())


def further(by: float) -> Any:
    """The second step with one value that is so many standard deviations off."""
    moved = STEPS[1].copy()
    moved[0, 0] += by * SPREAD
    return moved


def compared(folder: Path, head: dict[str, Any], base: dict[str, Any] = BASE) -> Verdict:
    """The one figure of two sides that left these values."""
    images = str(folder / "base.npy"), str(folder / "head.npy")
    for path, arrays in zip(images, (base, head), strict=True):
        np.savez(values_beside(path), **arrays)
    record = scenario_record("fp32")
    case = SideCase(record.id, None, {}, base=record, images=images)
    [verdict] = values.METRIC.judge(case, record)
    return verdict


def test_equal_values_pass_and_say_nothing_and_rounding_passes_and_is_shown(tmp_path: Path) -> None:
    equal, rounded = (
        compared(tmp_path, head) for head in (BASE, {**BASE, "step 2": further(ROUNDING / 2)})
    )
    assert equal.outcome is rounded.outcome is Outcome.PASS
    assert (equal.measured, equal.detail) == (0.0, "")
    assert rounded.detail == "values differ by 0.00015 std in step 2, the most"
    assert texts_of(rounded)[2] == "values differ by 0.00015 std"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"step 2": further(0.25)}, "values differ by 0.25 std in step 2 (limit 0.0003 std)"),
        (
            {"step 1": STEPS[0] + 0.01, "step 2": further(9)},
            "in step 1 (limit 0.0003 std); the most: values differ by 9 std in step 2",
        ),
        ({"step 2": further(math.nan)}, "values are not finite on head in step 2"),
        ({"step 2": np.zeros_like(STEPS[1])}, "values are all the same on head in step 2"),
        ({"step 2": STEPS[1, :2]}, "shape (4, 4) is now (2, 4) in step 2"),
        ({"step 3": STEPS[0]}, "base has no values in step 3"),
    ],
)
def test_what_is_beyond_rounding_fails_with_where_it_begins(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    figure = compared(tmp_path, {**BASE, **changes})
    assert figure.outcome is Outcome.REGRESSION
    assert words in figure.sentence


def test_a_call_that_raises_on_head_fails_and_one_that_raises_on_base_is_named(
    tmp_path: Path,
) -> None:
    works = {f"both prompts, {name}": array for name, array in BASE.items() if name != PARAMETERS}
    raises = {"both prompts, raised": np.array("ValueError: sizes differ")}
    figure = compared(tmp_path, {**BASE, **raises}, {**BASE, **works})
    assert figure.outcome is Outcome.REGRESSION
    assert figure.text == "head raises ValueError: sizes differ in both prompts (limit 0.0003 std)"
    for head in (works, raises):
        figure = compared(tmp_path, {**BASE, **head}, {**BASE, **raises})
        assert figure.outcome is Outcome.PASS
        assert figure.detail == (
            "values are equal; not compared: both prompts, where base raises ValueError"
        )


def test_what_is_not_finite_equals_nothing_but_the_same_infinity() -> None:
    def share(base: float, head: float) -> float:
        steps = ({"step": np.array([0.0, 1.0, value])} for value in (base, head))
        return differences(*steps)[0].share

    assert share(math.inf, math.inf) == 0
    for base, head in ((math.inf, -math.inf), (math.nan, math.nan), (math.nan, 1.0)):
        assert share(base, head) == math.inf


def test_other_parameters_explain_a_difference_and_nothing_else(tmp_path: Path) -> None:
    renamed = {**BASE, PARAMETERS: ["a", "c", "d"]}
    assert compared(tmp_path, renamed).outcome is Outcome.PASS
    moved = {**renamed, "step 1": STEPS[0] + 1}
    wrong = (further(math.nan), np.zeros_like(STEPS[1]), STEPS[1, :2])
    fewer = {name: array for name, array in moved.items() if name != "step 2"}
    for head in (*({**moved, "step 2": array} for array in wrong), fewer):
        figure = compared(tmp_path, head)
        assert figure.outcome is Outcome.REGRESSION
        assert "in step 2" in figure.text
    figure = compared(tmp_path, {**renamed, "step 2": further(1)})
    assert figure.outcome is Outcome.INCONCLUSIVE
    assert figure.text == (
        "values not compared: other parameters: base alone has b, head alone has c and 1 more"
    )


def test_weights_of_other_names_are_matched_where_their_order_and_shapes_leave_one_way() -> None:
    base = ["te/a (2, 2)", "te/b (2,)", "vae/a (3,)", "vae/b (2, 2)"]
    head = ["te/a (2, 2)", "te/c (2,)", "vae/b (2, 2)", "vae/d.e (3,)"]
    assert matched(base, head) == {"te/c (2,)": "te/b (2,)", "vae/d.e (3,)": "vae/a (3,)"}
    swapped = ["te/c (2,)", "te/d (2, 2)", *base[2:]]
    more = [*base, "vae/new (2,)"]
    elsewhere = [*base[:3], "te/d (2, 2)"]
    for other in (swapped, more, elsewhere, base):
        assert matched(base, other) == {}


def test_a_constant_has_no_spread_and_what_leaves_it_is_infinitely_far() -> None:
    zeros = np.zeros((2, 2))
    assert differences({"step": zeros}, {"step": zeros})[0].share == 0
    assert differences({"step": zeros}, {"step": zeros + 1})[0].share == math.inf


def test_what_left_no_values_has_no_figure() -> None:
    record = scenario_record("fp32")
    case = SideCase(record.id, None, {}, base=record, images=("no.npy", "none.npy"))
    assert values.METRIC.judge(case, record) == []
