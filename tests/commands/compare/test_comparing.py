"""A comparison: what differs is judged, what fails is a verdict, what is equal is counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from fixtures.commands.compare.__main__ import closing_line, render, write_comparison
from fixtures.commands.compare.comparing import METRICS, Compared, Comparing
from fixtures.commands.errors import CommandError
from fixtures.records.outcome import Outcome
from fixtures.records.run import RESULTS
from fixtures.report.comparison import texts_of
from fixtures.verdicts.likeness import has_flip
from fixtures.verdicts.limits import Limits
from tests.support.fake_side import fake_side, in_process
from tests.support.scenarios import find_scenario

SCENARIOS = [find_scenario("storybook", name) for name in ("fp32", "bf16")]
BF16 = "storybook-bf16"
NAMES = ("diffusers==0.42.1", "diffusers==0.43.0")
EXACT = ("peak_memory", "counts")
EXACTLY = Limits(exact=True)
METRIC_NAMES = {
    *("peak memory", "counts", "host calls", "SSIM", "latency", "faults"),
    *(["FLIP"] if has_flip() else []),
}
Compare = Callable[..., Compared]


@pytest.fixture
def compare(monkeypatch: pytest.MonkeyPatch) -> Compare:
    """Compares two fake sides by their kinds."""
    in_process(monkeypatch)

    def run(
        base: str, head: str, metrics: Sequence[str] = METRICS, limits: Limits = EXACTLY
    ) -> Compared:
        sides = fake_side(base, "base"), fake_side(head, "head")
        return Comparing(*sides, metrics, limits).run(SCENARIOS)

    return run


def outcomes(compared: Compared, scenario: str = BF16) -> dict[str, Outcome]:
    """By metric."""
    return {
        verdict.metric: verdict.outcome
        for verdict in compared.verdicts
        if verdict.scenario == scenario
    }


def test_a_side_compared_with_itself_differs_in_nothing(compare: Compare) -> None:
    compared = compare("sound", "sound")
    assert set(outcomes(compared)) == METRIC_NAMES
    assert {verdict.outcome for verdict in compared.verdicts} == {Outcome.PASS}
    assert all(verdict.baseline == verdict.measured for verdict in compared.verdicts)
    assert not compared.failed
    assert compared.compared == {"storybook-fp32", BF16}
    assert closing_line(compared) == (
        "0 findings: 0 failed, 0 improved, 0 inconclusive, 0 within limits; "
        "2 scenarios compared, 0 not"
    )


@pytest.mark.parametrize(
    ("kind", "outcome", "sign"),
    [("more", Outcome.REGRESSION, "+"), ("less", Outcome.IMPROVEMENT, "-")],
)
def test_a_byte_an_operation_and_more_python_in_a_step_are_a_difference(
    compare: Compare, kind: str, outcome: Outcome, sign: str
) -> None:
    compared = compare("sound", kind, (*EXACT, "host_calls"))
    names = ("peak memory", "peak memory (vae)", "operations", "host calls (a step)")
    assert outcomes(compared) == dict.fromkeys(names, outcome)
    assert bool(compared.failed) == (kind == "more")
    peak, _, operations, calls = (
        verdict for verdict in compared.verdicts if verdict.scenario == BF16
    )
    # One byte of half a gibibyte would be no difference in print.
    assert texts_of(peak)[2] == f"{sign}1"
    assert operations.detail == f"mm {sign}1"
    assert texts_of(calls) == ("600", "650" if kind == "more" else "550", f"{sign}8.3 %")


def test_figures_may_change_by_what_is_allowed_or_immaterial(compare: Compare) -> None:
    compared = compare("sound", "more", (*EXACT, "host_calls"), Limits(0.1, exact=True))
    assert set(outcomes(compared).values()) == {Outcome.PASS}
    printed = render(compared, NAMES, color=False)
    assert "operations" in printed
    assert "within limits: diffusers/model.py:Model.forward" in printed
    assert outcomes(compare("sound", "more", EXACT, Limits())) == {
        "peak memory": Outcome.PASS,
        "peak memory (vae)": Outcome.PASS,
        "operations": Outcome.REGRESSION,
    }


def test_a_latency_is_judged_both_ways_shows_both_sides_and_is_stored_as_wall_time(
    compare: Compare,
) -> None:
    assert outcomes(compare("slow", "sound", ("latency",))) == {"latency": Outcome.IMPROVEMENT}
    compared = compare("sound", "slow", ("latency",))
    assert outcomes(compared) == {"latency": Outcome.REGRESSION}
    figure = compared.verdicts[0]
    assert (figure.baseline, figure.measured) == pytest.approx((100, 110))
    assert texts_of(figure)[2] == "+10.0 %"
    assert compared.head.scenarios[BF16].wall_ms == pytest.approx(220)


def test_other_images_fail(compare: Compare) -> None:
    compared = compare("sound", "wide", ("images",))
    assert outcomes(compared) == {"SSIM": Outcome.BROKEN}
    assert len(compared.failed) == 2


@pytest.mark.parametrize(
    ("base", "head", "outcome", "not_run", "words"),
    [
        ("sound", "broken", Outcome.BROKEN, "head", "runs on base, and on head: it does not work"),
        ("sound", "idle", Outcome.NOT_ACTIVE, "head", "runs on base, and on head: not in effect: "),
        ("sound", "crash", Outcome.BROKEN, "head", "runs on base, and on head: head ended with"),
        ("broken", "sound", Outcome.UNSUPPORTED, "base", "not compared: on base: it does not work"),
        ("broken", "broken", Outcome.UNSUPPORTED, "both", "not compared: on both sides: it does"),
        ("sound", "absent", Outcome.UNSUPPORTED, "head", "not compared: on head: needs diffusers"),
        ("absent", "sound", Outcome.UNSUPPORTED, "base", "not compared: on base: needs diffusers"),
    ],
)
def test_what_does_not_run_fails_where_base_runs_it_and_the_rest_is_compared(
    compare: Compare, base: str, head: str, outcome: Outcome, not_run: str, words: str
) -> None:
    compared = compare(base, head, ("counts",))
    assert outcomes(compared) == {"run": outcome}
    assert outcomes(compared, "storybook-fp32") == {"counts": Outcome.PASS}
    (figure,) = [verdict for verdict in compared.verdicts if verdict.scenario == BF16]
    assert figure.not_run == not_run
    says_nothing = outcome is Outcome.UNSUPPORTED
    assert list(compared.failed) == ([] if says_nothing else [figure])
    assert (BF16 in compared.compared) != says_nothing
    printed = render(compared, NAMES, color=False)
    assert f"{BF16}: {words}" in printed
    assert ("; 1 scenario compared, 1 not" in printed) == says_nothing


def test_a_base_that_fails_while_it_is_timed_leaves_that_out_and_a_head_fails(
    compare: Compare,
) -> None:
    compared = compare("untimed", "sound", ("counts", "latency"))
    assert outcomes(compared) == {"counts": Outcome.PASS, "latency": Outcome.UNSUPPORTED}
    (latency,) = [
        figure
        for figure in compared.verdicts
        if (figure.scenario, figure.metric) == (BF16, "latency")
    ]
    assert latency.not_run == "base"
    assert not compared.failed
    assert compared.compared == {"storybook-fp32", BF16}
    words = f"storybook-fp32, {BF16}: latency not compared: on base: it does not work"
    assert words in render(compared, NAMES, color=False)
    failing = compare("sound", "untimed", ("latency",))
    assert outcomes(failing) == {"latency": Outcome.BROKEN}
    assert failing.failed[0].not_run == "head"


def test_a_head_that_cannot_be_imported_fails_and_a_base_compares_nothing(compare: Compare) -> None:
    compared = compare("sound", "import", ("counts",))
    assert len(compared.failed) == 2
    assert "ImportError" in render(compared, NAMES, color=False)
    without_base = compare("import", "sound")
    assert not without_base.compared
    assert not without_base.failed


def test_of_two_devices_nothing_is_compared(compare: Compare) -> None:
    with pytest.raises(CommandError, match="base runs on fake and head on fake-other"):
        compare("sound", "elsewhere")
    text = render(compare("sound", "more", EXACT), NAMES, color=False)
    assert text.startswith(
        "regression\n    storybook, 128 x 128, 20 steps, fp32: peak 536,870,912 ->"
    )
    assert "changed from base to head: diffusers 0.42.1 -> 0.43.0" in text
    assert "flops" not in text


def test_both_sides_are_written(compare: Compare, tmp_path: Path) -> None:
    compared = compare("sound", "more")
    folder = tmp_path / "report"
    written = write_comparison(folder, compared, NAMES)
    assert {path.name for path in written} == {
        "results.json",
        "summary.md",
        "report.html",
        "base.json",
    }
    base, head = (RESULTS.read(folder / name) for name in ("base.json", "results.json"))
    assert not base.scenarios[BF16].verdicts
    assert head.scenarios[BF16].outcome is Outcome.REGRESSION
    assert head.scenarios[BF16].changed == ["diffusers 0.42.1 -> 0.43.0"]
    page = (folder / "report.html").read_text()
    assert "Base and head" in page
    assert "Head, judged against base" in page
