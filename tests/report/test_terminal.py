"""The end of a run on the terminal: the table, the sentences, the counts."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from typing import Any

import pytest

from fixtures.metrics.counts import COUNTS
from fixtures.metrics.latency_verdicts import ELSEWHERE
from fixtures.records.counts import BREAKS, GRAPHS, KERNELS, LAUNCHES, OPERATIONS, TOTALS
from fixtures.records.outcome import Outcome
from fixtures.records.run import RunRecord, ScenarioRecord
from fixtures.records.timing import Interval
from fixtures.report.table import COLUMNS
from fixtures.report.terminal import PIPED_WIDTH, closing_line, render, width_of
from tests.support.counting import counted, host_calls
from tests.support.runs import MIB, run_record, scenario_record, verdict

ESCAPE = "\x1b"


@pytest.fixture
def measured() -> ScenarioRecord:
    return scenario_record(
        "fp16",
        Outcome.PASS,
        documented_speedup=2.63,
        wall_ms=1234.0,
        speedup=Interval(1.5, 1.4, 1.6),
        peak_bytes=256 * MIB,
        reference_peak_bytes=512 * MIB,
        counts=counted({OPERATIONS: 29709}),
        ssim=0.99871,
    )


def shown(run: RunRecord, *, width: int = 400) -> str:
    return render(run, width=width, color=False)


def row(text: str, technique: str) -> list[str]:
    """The cells of a technique's row."""
    line = next(line for line in text.splitlines() if line.strip().startswith(technique))
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_the_table_has_every_figure_of_a_scenario(measured: ScenarioRecord) -> None:
    text = shown(run_record(measured))
    assert text.startswith("storybook on cpu\n")
    cells = dict(zip(row(text, "technique"), row(text, "fp16"), strict=True))
    expected = {
        "latency": "1.23 s ok",
        "speed-up [95 %]": "x1.50 [1.40, 1.60]",
        "documented": "x2.63",
        "peak memory": "256.00 MiB -",
        "vs fp32": "-50.0 %",
        "SSIM": "0.9987 -",
        "operations": "29,709 -",
        "verdict": "pass",
    }
    assert {title: cells[title] for title in expected} == expected


def test_every_column_is_shown_where_a_scenario_has_its_figure(measured: ScenarioRecord) -> None:
    kinds = (*TOTALS, LAUNCHES, GRAPHS, BREAKS, KERNELS)
    measured.counts = counted(dict.fromkeys(kinds, 1)).beside(host_calls())
    measured.verdicts.append(verdict(measured.id, metric="activation"))
    measured.verdicts.append(verdict(measured.id, baseline=1.0, limit=1.06))
    titles = row(shown(run_record(measured)), "technique")[2:]
    assert {*titles, "roofline bound"} == {
        column.title for column in COLUMNS if column.title != "in effect"
    }


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_a_table_is_as_wide_as_the_terminal_and_says_what_is_left_out(
    measured: ScenarioRecord, width: int
) -> None:
    measured.counts = measured.counts.beside(host_calls())
    run = run_record(measured, scenario_record("channels_last_traced_unet", Outcome.PASS))
    text = shown(run, width=width)
    table = text[: text.index("after each figure")].splitlines()
    titles = row(text, "technique")
    assert max(len(line) for line in table if not line.startswith("not shown")) <= width
    assert titles[:3] == ["technique", "verdict", "latency"]
    left_out = [line for line in table if line.startswith(f"not shown in {width} columns: ")]
    named = left_out[0].partition(": ")[2].split(", ") if left_out else []
    assert bool(named) is (width < 160)
    assert {*titles, *named} >= {"SSIM", "peak memory", "speed-up [95 %]", "documented"}
    assert not {*titles} & {*named}


def test_a_column_in_which_something_failed_is_shown_however_narrow_the_terminal() -> None:
    record = judged_as(image=Outcome.REGRESSION, activation=Outcome.NOT_ACTIVE)
    text = shown(run_record(record), width=20)
    assert row(text, "technique") == ["technique", "verdict", "SSIM", "in effect"]
    assert row(text, "bf16") == ["bf16", "not active", "0.9900 FAIL", "FAIL"]


@pytest.mark.parametrize(
    ("columns", "width"), [("100", 100), ("", PIPED_WIDTH), ("none", PIPED_WIDTH)]
)
def test_a_log_is_as_wide_as_it_is_told(
    columns: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert width_of(io.StringIO()) == width


@pytest.mark.parametrize(
    ("measured_now", "baseline", "cell"),
    [
        (1520.0, 1400.0, "1,520 (+120) ok"),
        (1400.0, 1520.0, "1,520 (-120) ok"),
        (1400.0, 1400.0, "1,520 ok"),
        (1400.0, None, "1,520 ok"),
        (None, 1400.0, "1,520 ok"),
    ],
)
def test_operations_stand_with_their_change_as_far_as_a_verdict_tells_it(
    measured_now: float | None, baseline: float | None, cell: str
) -> None:
    record = scenario_record("fp16", counts=counted({OPERATIONS: 1520}))
    record.verdicts = [
        verdict(record.id, metric="SSIM", measured=9.0, baseline=1.0),
        verdict(record.id, metric=COUNTS.name, measured=measured_now, baseline=baseline),
    ]
    assert row(shown(run_record(record)), "fp16")[2] == cell


# What was judged


def judged_with(technique: str, *said: tuple[str, Outcome, str], **figures: Any) -> ScenarioRecord:
    """A scenario with a verdict for each metric, outcome and detail."""
    verdicts = [
        verdict(f"storybook-{technique}", outcome, metric, detail=detail)
        for metric, outcome, detail in said
    ]
    return scenario_record(technique, verdicts=verdicts, **figures)


EVERYTHING = run_record(
    judged_with("fp32", ("latency ratio", Outcome.PASS, ""), wall_ms=1234.0, peak_bytes=512 * MIB),
    judged_with(
        "fp16",
        ("peak memory", Outcome.PASS, "9 MiB (limit 10 MiB)"),
        ("counts", Outcome.REGRESSION, "aten::mm 4 -> 8 (+4) in Unet"),
        ("peak memory (vae)", Outcome.IMPROVEMENT, ""),
        ("latency ratio", Outcome.INCONCLUSIVE, ""),
        ("SSIM", Outcome.PASS, ""),
        ("FLIP", Outcome.NOT_JUDGED, "no tiles"),
        ("FLIP maximum", Outcome.REGRESSION, "0.5"),
        ("activation", Outcome.PASS, ""),
        wall_ms=120.0,
        peak_bytes=256 * MIB,
        ssim=0.99871,
        counts=counted({OPERATIONS: 29709}),
    ),
    scenario_record("fp32", workload="sd15", weights="embedded"),
    judged_with(
        "bf16",
        ("SSIM", Outcome.NO_BASELINE, ""),
        ("counts", Outcome.NO_BASELINE, ""),
        ("peak memory", Outcome.NOT_JUDGED, "no peak"),
        ssim=math.nan,
    ),
    scenario_record("tiling", Outcome.BROKEN),
    scenario_record("sdpa"),
    scenario_record("slicing"),
    scenario_record("tf32", unsupported="needs a CUDA device"),
    scenario_record("cudnn_benchmark", unsupported="needs a CUDA device"),
    scenario_record("xformers", unsupported="xFormers is not installed"),
    weights="random",
    notes=["Baseline written."],
)
SHOWN = """\
storybook on cpu, weights random
technique   verdict           latency     peak memory                SSIM    operations
───────────────────────────────────────────────────────────────────────────────────────
fp32        recorded      1.23 s ok     512.00 MiB -                 -             -
fp16        regression    120 ms ?      256.00 MiB ok         0.9987 FAIL   29,709 FAIL
bf16        no baseline          -                 -    not an image FAIL          FAIL
tiling      broken               FAIL              -                 -             -
sdpa        recorded             -                 -                 -             -
slicing     not judged           -                 -                 -             -
fp16: regression: counts: aten::mm 4 -> 8 (+4) in Unet
fp16: improvement: says why
fp16: inconclusive: says why
fp16: regression: FLIP maximum: 0.5
bf16: no baseline: SSIM, counts
tiling: broken: says why
not judged on storybook: memory of bf16: no peak
unsupported on storybook: tf32, cudnn_benchmark: needs a CUDA device
unsupported on storybook: xformers: xFormers is not installed
sd15 (weights: embedded) on cpu, weights random
technique   verdict
──────────────────────
fp32        not judged
after each figure: ok = passed, FAIL = failed, ? = undecided, - = not judged
Baseline written.
"""


def test_the_end_of_a_run_has_each_figure_with_its_mark_each_reason_once_and_the_notes() -> None:
    """What this run refreshed is recorded, unless it failed."""
    recorded = [f"storybook-{name}" for name in ("fp32", "bf16", "tiling", "sdpa")]
    assert render(EVERYTHING, width=96, color=False, recorded=recorded) == SHOWN


def judged_as(**outcomes: Outcome) -> ScenarioRecord:
    """A scenario with every figure, and a verdict for each of these metrics."""
    name = "storybook-bf16"
    metrics = {"latency": "latency ratio", "memory": "peak memory", "image": "SSIM"}
    return scenario_record(
        "bf16",
        wall_ms=120.0,
        peak_bytes=256 * MIB,
        ssim=0.99,
        counts=counted({OPERATIONS: 1520}),
        verdicts=[
            verdict(name, outcome, metrics.get(group, group)) for group, outcome in outcomes.items()
        ],
    )


def test_strict_marks_the_undecided_and_the_improved_as_failed() -> None:
    record = judged_as(latency=Outcome.INCONCLUSIVE, counts=Outcome.IMPROVEMENT)
    strict = render(run_record(record), width=400, color=False, strict=True)
    cells = row(strict, "bf16")
    assert (cells[2], cells[-1]) == ("120 ms FAIL", "1,520 FAIL")
    assert row(shown(run_record(record)), "bf16")[-1] == "1,520 ok"


def test_each_reason_why_nothing_was_judged_is_given_once() -> None:
    records = [scenario_record(name) for name in ("fp32", "fp16", "torch_compile")]
    for record in records:
        for metric in ("peak memory", "latency ratio"):
            unknown = verdict(record.id, Outcome.NOT_JUDGED, metric, detail="nothing recorded")
            record.verdicts.append(unknown)
        reason = "compiled" if record is records[-1] else "unsampled"
        record.verdicts.append(verdict(record.id, Outcome.NOT_JUDGED, "counts", detail=reason))
    # What was judged by another verdict is judged.
    for metric, outcome in (("SSIM", Outcome.PASS), ("FLIP", Outcome.NOT_JUDGED)):
        records[0].verdicts.append(verdict(records[0].id, outcome, metric, detail="no tiles"))
    said = [line for line in shown(run_record(*records)).splitlines() if "not judged on" in line]
    assert said == [
        "not judged on storybook: latency, memory: nothing recorded",
        "not judged on storybook: counts of all but torch_compile: unsampled",
        "not judged on storybook: counts of torch_compile: compiled",
    ]


@pytest.mark.parametrize("color", [False, True])
def test_escape_sequences_are_there_with_color_alone_whatever_the_terminal(
    color: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    text = render(EVERYTHING, width=96, color=color)
    assert (ESCAPE in text) is color
    assert "regression" in text


def test_a_long_name_is_not_cut(measured: ScenarioRecord) -> None:
    name = "combined_" + "x" * 300
    text = shown(run_record(scenario_record(name, Outcome.PASS, wall_ms=1.0), measured), width=80)
    assert row(text, name)[0] == name
    assert row(text, "fp16")[1] == row(text, name)[1] == "pass"
    assert "…" not in text


def test_markup_in_a_name_is_text_and_not_a_command() -> None:
    run = run_record(
        scenario_record("[red]fp16[/red]", workload="[bold]mine[/bold]"),
        weights="[u]w[/u]",
        notes=["[blink]note[/blink]"],
    )
    text = shown(run)
    title = "[bold]mine[/bold] on cpu, weights [u]w[/u]"
    for words in ("[red]fp16[/red]", title, "[blink]note[/blink]"):
        assert words in text


def test_a_run_that_met_nothing_has_no_table() -> None:
    assert shown(RunRecord()) == ""


# The closing line

ALL = run_record(
    scenario_record("pass", Outcome.PASS, Outcome.PASS),
    scenario_record("better", Outcome.PASS, Outcome.IMPROVEMENT),
    scenario_record("undecided", Outcome.INCONCLUSIVE, Outcome.PASS),
    scenario_record("slow", Outcome.REGRESSION),
    scenario_record("new", Outcome.NO_BASELINE),
    scenario_record("off", Outcome.NOT_ACTIVE),
    scenario_record("broken", Outcome.BROKEN),
    scenario_record("elsewhere", Outcome.NOT_JUDGED),
    scenario_record("unknown"),
    scenario_record("cuda", unsupported="no GPU"),
)


def test_the_closing_line_counts_every_scenario_once_the_undecided_as_failed_if_strict() -> None:
    assert closing_line(ALL, strict=False) == (
        "7 judged: 2 passed (1 improved), 4 failed, 1 undecided; latency judged for 6 of 9; "
        "1 unsupported, 2 not judged"
    )
    assert closing_line(ALL, strict=True) == (
        "7 judged: 1 passed, 6 failed, 0 undecided; latency judged for 6 of 9; "
        "1 unsupported, 2 not judged"
    )


def held_to(technique: str, limit: float | None, outcome: Outcome) -> ScenarioRecord:
    held = verdict(f"storybook-{technique}", outcome, baseline=1.25, limit=limit)
    return scenario_record(technique, verdicts=[held], wall_ms=100.0)


def test_the_closing_line_and_the_table_say_what_latencies_were_held_to() -> None:
    fp32, fp16 = held_to("fp32", 1.3, Outcome.PASS), held_to("fp16", 1.5, Outcome.REGRESSION)
    fp16.verdicts = [replace(fp16.verdicts[0], detail=f"1.25 (limit 1.5, {ELSEWHERE})")]
    new = held_to("new", None, Outcome.NO_BASELINE)
    for records, words in (
        ((fp32, fp16, new), "; latency judged for 2 of 3, limits 4 to 20 %; "),
        ((fp32,), "; latency judged for 1 of 1, limit 4 %; "),
        ((new,), "; latency judged for 0 of 1; "),
    ):
        assert words in closing_line(run_record(*records), strict=False)
    claimed = run_record(new, claims={"not comparable": 2, "confirmed": 3})
    claims = "; documented claims: 3 confirmed, 2 not comparable"
    assert closing_line(claimed, strict=False).endswith(claims)
    text = shown(run_record(fp32, fp16))
    for technique, limit in (("fp32", "+4 %"), ("fp16", "+20 % by others")):
        cells = dict(zip(row(text, "technique"), row(text, technique), strict=True))
        assert cells["its limit"] == limit
