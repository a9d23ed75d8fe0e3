"""The end of a run on the terminal: the table, the sentences, the counts."""

from __future__ import annotations

import pytest

from fixtures.report.record import RunRecord, ScenarioRecord
from fixtures.report.terminal import MEASURED, closing_line, render
from fixtures.statistics import Interval
from fixtures.verdicts import Outcome, Verdict

MIB = 2**20
ESCAPE = "\x1b"


def scenario(
    technique: str, *outcomes: Outcome, workload: str = "storybook", unsupported: str | None = None
) -> ScenarioRecord:
    """A record with these verdicts and no figures."""
    name = f"{workload}-{technique}"
    made = ScenarioRecord(name, workload, technique, "precision", unsupported=unsupported)
    made.verdicts = [Verdict(name, "latency", outcome, "") for outcome in outcomes]
    return made


def run_of(*records: ScenarioRecord) -> RunRecord:
    """A run that met these scenarios."""
    return RunRecord("cpu", scenarios={one.id: one for one in records})


@pytest.fixture
def measured() -> ScenarioRecord:
    one = scenario("fp16", Outcome.PASS)
    one.documented_speedup = 2.63
    one.latency_ms = 1234.0
    one.speedup = Interval(1.5, 1.4, 1.6)
    one.peak_bytes, one.reference_peak_bytes = 256 * MIB, 512 * MIB
    one.ssim = 0.99871
    return one


def row(text: str, technique: str) -> list[str]:
    """The cells of a technique's row."""
    line = next(line for line in text.splitlines() if line.strip().startswith(technique))
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_the_table_has_every_figure_of_a_scenario(measured: ScenarioRecord) -> None:
    text = render(run_of(measured), width=80, color=False)
    assert "storybook on cpu" in text
    for name, _ in MEASURED:
        assert name in text
    assert row(text, "fp16") == [
        "fp16",
        "1.23 s",
        "x1.50 [1.40, 1.60]",
        "x2.63",
        "256.00 MiB",
        "-50.0 %",
        "0.9987",
        "pass",
    ]


def test_what_was_not_measured_is_a_dash() -> None:
    text = render(run_of(scenario("fp16")), width=80, color=False)
    assert row(text, "fp16") == ["fp16", *["-"] * 6, "unjudged"]


@pytest.mark.parametrize("outcome", [o for o in Outcome if o is not Outcome.UNSUPPORTED])
def test_the_verdict_is_the_gravest_one(outcome: Outcome) -> None:
    text = render(run_of(scenario("fp16", Outcome.PASS, outcome)), width=80, color=False)
    assert row(text, "fp16")[-1] == outcome.value


def test_each_workload_has_a_table_of_its_own() -> None:
    run = run_of(
        scenario("fp32"), scenario("fp32", workload="sd15"), scenario("bf16", workload="sd15")
    )
    text = render(run, width=80, color=False)
    assert text.index("storybook on cpu") < text.index("sd15 on cpu")
    assert text.count("verdict") == 2


def test_what_is_unsupported_stands_below_the_table_once_per_reason() -> None:
    run = run_of(
        scenario("fp32", Outcome.PASS),
        scenario("tf32", unsupported="needs a CUDA device"),
        scenario("cudnn_benchmark", unsupported="needs a CUDA device"),
        scenario("xformers", unsupported="xFormers is not installed"),
    )
    text = render(run, width=80, color=False)
    assert "unsupported on storybook: tf32, cudnn_benchmark: needs a CUDA device\n" in text
    assert "unsupported on storybook: xformers: xFormers is not installed\n" in text
    assert text.count("needs a CUDA device") == 1


def test_without_color_there_is_no_escape_sequence(
    measured: ScenarioRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLORTERM", "truecolor")
    run = run_of(measured, scenario("bf16", Outcome.REGRESSION), scenario("x", unsupported="no"))
    run.note("a note")
    assert ESCAPE not in render(run, width=80, color=False)


def test_with_color_the_words_are_the_same(
    measured: ScenarioRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    run = run_of(measured, scenario("bf16", Outcome.REGRESSION))
    text = render(run, width=80, color=True)
    assert ESCAPE in text
    assert "regression" in text


@pytest.mark.parametrize("width", [20, 80, 400])
@pytest.mark.parametrize("length", [30, 300])
def test_a_long_name_is_not_cut(measured: ScenarioRecord, width: int, length: int) -> None:
    name = "combined_" + "x" * length
    one = scenario(name, Outcome.PASS)
    one.latency_ms, one.speedup = measured.latency_ms, measured.speedup
    text = render(run_of(one, measured), width=width, color=False)
    assert row(text, name)[0] == name
    assert row(text, "fp16")[-1] == row(text, name)[-1] == "pass"
    assert "…" not in text


def test_markup_in_a_name_is_text_and_not_a_command() -> None:
    run = run_of(scenario("[red]fp16[/red]", workload="[bold]mine[/bold]"))
    run.note("[blink]note[/blink]")
    text = render(run, width=80, color=False)
    for words in ("[red]fp16[/red]", "[bold]mine[/bold] on cpu", "[blink]note[/blink]"):
        assert words in text


def test_a_note_is_kept_once_and_shown() -> None:
    run = run_of(scenario("fp32"))
    run.note("Baseline written.")
    run.note("Baseline written.")
    assert render(run, width=80, color=False).count("Baseline written.") == 1


def test_a_run_that_met_nothing_has_an_empty_table() -> None:
    assert render(RunRecord(), width=80, color=False) == ""


ALL = [
    scenario("pass", Outcome.PASS, Outcome.PASS),
    scenario("better", Outcome.PASS, Outcome.IMPROVEMENT),
    scenario("undecided", Outcome.INCONCLUSIVE, Outcome.PASS),
    scenario("slow", Outcome.REGRESSION),
    scenario("new", Outcome.NO_BASELINE),
    scenario("off", Outcome.NOT_ACTIVE),
    scenario("broken", Outcome.BROKEN),
    scenario("elsewhere", Outcome.UNSUPPORTED),
    scenario("unjudged"),
    scenario("cuda", unsupported="no GPU"),
]


def test_the_counts_add_up_and_name_everything() -> None:
    counts = run_of(*ALL).counts(strict=False)
    assert counts == {
        "judged": 7,
        "passed": 2,
        "red": 4,
        "inconclusive": 1,
        "unsupported": 1,
        "unjudged": 2,
    }


def test_strict_counts_the_undecided_and_the_stale_as_red() -> None:
    counts = run_of(*ALL).counts(strict=True)
    assert (counts["passed"], counts["red"], counts["inconclusive"]) == (1, 6, 0)


@pytest.mark.parametrize("strict", [True, False])
def test_every_scenario_is_counted_exactly_once(strict: bool) -> None:
    counts = run_of(*ALL).counts(strict=strict)
    assert counts["judged"] + counts["unsupported"] + counts["unjudged"] == len(ALL)
    assert counts["passed"] + counts["red"] + counts["inconclusive"] == counts["judged"]


def test_the_closing_line_says_the_counts_and_the_claims() -> None:
    counts = run_of(*ALL).counts(strict=False)
    line = "scenarios: 7 judged: 2 passed, 4 red, 1 inconclusive; 1 unsupported, 2 unjudged"
    assert closing_line(counts, {}) == line
    assert closing_line(counts, {"hold": 3, "do not hold here": 1}) == (
        f"{line}; documented claims: 3 hold, 1 do not hold here"
    )
