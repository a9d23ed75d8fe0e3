"""A comparison: what differs is judged, what fails is a verdict, what is equal is counted."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from fixtures.compare.process import Side
from fixtures.compare.run import METRICS, Compared, Comparing, ComparisonError
from fixtures.compare.table import closing_line, render
from fixtures.compare.written import write_comparison
from fixtures.report.results import from_json
from fixtures.scenarios import scenarios
from fixtures.settings import Settings
from fixtures.verdicts import Outcome

FAKE = Path(__file__).with_name("fake_side.py")
FOUND = [one for one in scenarios(["storybook"]) if one.technique.id in ("fp32", "bf16")]
BF16 = "storybook-bf16"
Compare = Callable[..., Compared]


@pytest.fixture(scope="module")
def compare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compare]:
    """Compares two fake sides by their kinds; each is started once."""
    folder = tmp_path_factory.mktemp("sides")
    made: dict[tuple[str, str], Side] = {}

    def side(name: str, kind: str) -> Side:
        if (name, kind) not in made:
            command = [sys.executable, str(FAKE), kind]
            made[name, kind] = Side(name, command, Settings(), folder / kind, 60.0)
        return made[name, kind]

    def run(base: str, head: str, metrics: Sequence[str] = METRICS, **options: float) -> Compared:
        sides = (side("base", base), side("head", head))
        return Comparing(*sides, metrics=metrics, show=lambda text: None, **options).run(FOUND)

    yield run
    for one in made.values():
        one.close()


def outcomes(compared: Compared, scenario: str = BF16) -> dict[str, Outcome]:
    """By metric."""
    return {
        row.verdict.metric: row.verdict.outcome
        for row in compared.rows
        if row.verdict.scenario == scenario
    }


def test_a_side_compared_with_itself_differs_in_nothing(compare: Compare) -> None:
    compared = compare("sound", "sound")
    assert set(outcomes(compared)) == {"peak memory", "operations", "SSIM", "latency"}
    assert {row.verdict.outcome for row in compared.rows} == {Outcome.PASS}
    assert all(row.base == row.head for row in compared.rows)
    assert not compared.red
    assert compared.compared == 2
    assert "0 regressions" in closing_line(compared)


@pytest.mark.parametrize(
    ("kind", "outcome"), [("more", Outcome.REGRESSION), ("less", Outcome.IMPROVEMENT)]
)
def test_a_byte_and_an_operation_are_a_difference(
    compare: Compare, kind: str, outcome: Outcome
) -> None:
    compared = compare("sound", kind, ("peak_memory", "counters"))
    assert outcomes(compared) == {
        "peak memory": outcome,
        "peak memory (vae)": outcome,
        "operations": outcome,
    }
    assert bool(compared.red) == (kind == "more")
    row = next(row for row in compared.rows if row.verdict.metric == "operations")
    assert row.note.startswith("mm ")
    memory = compared.rows[0]
    # One byte of half a gibibyte would be no difference in print.
    assert memory.texts[2] == ("+1" if kind == "more" else "-1")


def test_exact_figures_may_be_allowed_to_change(compare: Compare) -> None:
    compared = compare("sound", "more", ("peak_memory", "counters"), allowed=0.1)
    assert set(outcomes(compared).values()) == {Outcome.PASS}
    assert "operations" in render(compared, color=False)


def test_a_slower_head_is_red_and_a_faster_one_an_improvement(compare: Compare) -> None:
    assert outcomes(compare("sound", "slow", ("latency",))) == {"latency": Outcome.REGRESSION}
    assert outcomes(compare("slow", "sound", ("latency",))) == {"latency": Outcome.IMPROVEMENT}


def test_a_latency_shows_both_sides_and_the_share_of_its_turns(compare: Compare) -> None:
    compared = compare("sound", "slow", ("latency",))
    row = compared.rows[0]
    assert (row.base, row.head) == (pytest.approx(100), pytest.approx(110))
    assert row.texts[2] == "+10.0 %"
    assert "ran 100%" in compared.head.scenarios[BF16].evidence[0]


def test_another_picture_is_red(compare: Compare) -> None:
    compared = compare("sound", "white", ("pictures",))
    assert outcomes(compared)["SSIM"] in (Outcome.REGRESSION, Outcome.BROKEN)
    assert compared.red


@pytest.mark.parametrize(
    ("kind", "outcome", "words"),
    [
        ("broken", Outcome.BROKEN, "runs on base, and on head: it does not work"),
        ("idle", Outcome.NOT_ACTIVE, "runs on base, and on head: it does not work"),
        ("crash", Outcome.BROKEN, "runs on base, and on head: head ended with code 3"),
    ],
)
def test_what_fails_on_head_alone_is_red_and_the_rest_goes_on(
    compare: Compare, kind: str, outcome: Outcome, words: str
) -> None:
    compared = compare("sound", kind, ("counters",))
    assert outcomes(compared) == {"run": outcome}
    assert outcomes(compared, "storybook-fp32") == {"operations": Outcome.PASS}
    assert [row.verdict.scenario for row in compared.red] == [BF16]
    assert words in render(compared, color=False)


@pytest.mark.parametrize(
    ("base", "head", "words"),
    [
        ("broken", "sound", "not compared: on base: it does not work"),
        ("broken", "broken", "not compared: on both sides: it does not work"),
        ("sound", "absent", "not compared: on head: needs diffusers 0.33 or later"),
        ("absent", "sound", "not compared: on base: needs diffusers 0.33 or later"),
    ],
)
def test_what_one_side_cannot_run_is_said_and_not_red(
    compare: Compare, base: str, head: str, words: str
) -> None:
    compared = compare(base, head, ("counters",))
    assert outcomes(compared) == {"run": Outcome.UNSUPPORTED}
    assert not compared.red
    assert compared.compared == 1
    assert words in render(compared, color=False)


def test_a_head_that_cannot_be_imported_is_red_everywhere(compare: Compare) -> None:
    compared = compare("sound", "import", ("counters",))
    assert len(compared.red) == 2
    assert "ImportError" in render(compared, color=False)


def test_a_base_that_cannot_be_imported_compares_nothing(compare: Compare) -> None:
    compared = compare("import", "sound")
    assert compared.compared == 0
    assert not compared.red


def test_two_devices_cannot_be_compared(compare: Compare) -> None:
    with pytest.raises(ComparisonError, match="base runs on fake and head on fake-other"):
        compare("sound", "elsewhere")


def test_the_table_names_changed_packages_and_hides_what_is_equal(compare: Compare) -> None:
    text = render(compare("sound", "more", ("peak_memory", "counters")), color=False)
    assert "changed from base to head: diffusers 0.42.1 -> 0.43.0" in text
    assert "536,870,912" in text
    assert "flops" not in text


def test_both_sides_are_written(compare: Compare, tmp_path: Path) -> None:
    compared = compare("sound", "more")
    folder = tmp_path / "report"
    written = write_comparison(folder, compared, ["diffusers==0.42.1", "diffusers==0.43.0"])
    assert {path.name for path in written} == {
        "results.json",
        "summary.md",
        "report.html",
        "base.json",
    }
    stored = {
        name: from_json(json.loads((folder / name).read_text()))
        for name in ("base.json", "results.json")
    }
    assert not stored["base.json"].scenarios[BF16].verdicts
    head = stored["results.json"].scenarios[BF16]
    assert head.status == "regression"
    assert head.changed == ["diffusers 0.42.1 -> 0.43.0"]
    page = (folder / "report.html").read_text()
    assert "Both sides" in page
    assert "Head, judged against base" in page
