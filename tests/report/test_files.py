"""The report's files: whole, escaped, short enough, and refused before anything is measured."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.report import files
from fixtures.report.__main__ import main
from fixtures.report.files import ReportError, check_writable, write_report
from fixtures.report.record import RunRecord, ScenarioRecord
from fixtures.report.results import from_json
from fixtures.report.summary import LIMIT, summary
from fixtures.verdicts import Outcome, Verdict
from tests.running import run_suite

NAMES = ["results.json", "summary.md", "report.html"]


def scenario(technique: str, outcome: Outcome, sentence: str = "why") -> ScenarioRecord:
    name = f"storybook-{technique}"
    record = ScenarioRecord(name, "storybook", technique, "precision", latency_ms=120.0)
    record.verdicts.append(Verdict(name, "latency ratio", outcome, sentence))
    return record


def run_of(*records: ScenarioRecord) -> RunRecord:
    run = RunRecord(device_key="cpu", hardware={"threads": 1}, software={"torch": "2.13.0"})
    run.scenarios = {record.id: record for record in records}
    return run


MIXED = run_of(
    scenario("fp16", Outcome.REGRESSION, "fp16 is slower"),
    scenario("bf16", Outcome.PASS),
    scenario("sdpa", Outcome.INCONCLUSIVE, "sdpa is undecided for noise"),
    ScenarioRecord("storybook-tf32", "storybook", "tf32", "precision", unsupported="needs CUDA"),
)


def test_counts_and_red_sentences_come_first_and_every_scenario_has_a_row() -> None:
    text = summary(MIXED, strict=False)
    assert text.index("1 red") < text.index("- fp16 is slower") < text.index("| technique")
    assert "**Undecided**\n\n- sdpa is undecided for noise" in text
    assert "| fp16 | 120 ms |" in text
    assert "❌ regression |" in text
    assert "✅ pass |" in text
    assert "- tf32: unsupported: needs CUDA" in text


def test_strict_counts_the_undecided_as_red() -> None:
    text = summary(MIXED, strict=True)
    assert "**Undecided**" not in text
    assert "- sdpa is undecided for noise" in text[text.index("**Red**") :]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;"),
        ("a|b", "a\\|b"),
        ("[click](https://example.org)", "\\[click\\]"),
        ("two\n\n# lines", "two # lines"),
        ("`code` *bold* _it_ ~~no~~ <!-- gone -->", "\\`code\\` \\*bold\\*"),
    ],
)
def test_words_from_outside_are_no_markup(words: str, shown: str) -> None:
    text = summary(run_of(scenario("fp16", Outcome.REGRESSION, words)), strict=False)
    assert shown in text
    assert words not in text


def test_a_summary_that_would_be_too_long_leaves_the_tables_out_and_says_so() -> None:
    many = run_of(*(scenario(f"technique{number}", Outcome.PASS) for number in range(2000)))
    text = summary(many, strict=False)
    assert len(text) <= LIMIT
    assert "2000 judged" in text
    assert "too long for this place" in text


def test_results_hold_the_whole_run_and_no_file_is_left_half_written(tmp_path: Path) -> None:
    written = write_report(tmp_path / "new" / "report", MIXED, strict=False)
    assert [path.name for path in written] == NAMES
    assert sorted(path.name for path in written[0].parent.iterdir()) == sorted(NAMES)
    assert from_json(json.loads(written[0].read_text())) == MIXED
    assert written[1].read_text() == summary(MIXED, strict=False)


def test_on_github_the_summary_is_added_to_the_job_s_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n")
    monkeypatch.setenv(files.STEP_SUMMARY, str(page))
    write_report(tmp_path / "report", MIXED, strict=False)
    assert page.read_text().startswith("before\n## Performance on cpu")


def test_a_folder_that_is_a_file_is_refused_in_one_sentence(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("mine")
    with pytest.raises(ReportError, match="cannot be written"):
        check_writable(place)
    with pytest.raises(ReportError, match="give another folder"):
        write_report(place, MIXED, strict=False)
    assert place.read_text() == "mine"


def test_a_full_disk_leaves_the_old_report_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_report(tmp_path, MIXED, strict=False)
    before = (tmp_path / "results.json").read_text()

    def full(path: Path, content: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "check_writable", lambda folder: None)
    monkeypatch.setattr(files, "write_whole", full)
    with pytest.raises(ReportError, match=r"not whole.*No space left"):
        write_report(tmp_path, run_of(), strict=False)
    assert (tmp_path / "results.json").read_text() == before


def test_a_run_writes_its_report_and_names_the_files(tmp_path: Path) -> None:
    folder = tmp_path / "report"
    result = run_suite(f"--perf-report={folder}", "-k", "test_activation and [storybook-bf16]")
    assert result.returncode == 0, result.stdout + result.stderr
    said = " ".join(result.stdout.split())  # a long line is wrapped
    assert f"Report written: {', '.join(str(folder / name) for name in NAMES)}" in said
    stored = from_json(json.loads((folder / "results.json").read_text()))
    assert list(stored.scenarios) == ["storybook-bf16"]


def test_a_report_that_cannot_be_written_is_refused_before_anything_is_measured(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_text("")
    result = run_suite(f"--perf-report={tmp_path / 'file'}", "-k", "[storybook-bf16]")
    assert result.returncode == 4
    assert "cannot be written" in result.stdout + result.stderr


# Rebuilt from results


def test_a_report_is_rebuilt_from_its_results_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = write_report(tmp_path / "first", MIXED, strict=False)
    again = tmp_path / "again"
    assert main([str(first[0]), "--output", str(again)]) == 0
    assert str(again / "report.html") in capsys.readouterr().out
    for path in first:
        assert (again / path.name).read_bytes() == path.read_bytes()


def test_shards_become_one_report(tmp_path: Path) -> None:
    halves = []
    for number, name in enumerate(("fp32", "fp16")):
        run = replace(MIXED, scenarios={}, notes=["common"], recorded_at=f"2026-11-2{2 - number}")
        record = ScenarioRecord(f"storybook-{name}", "storybook", name, "precision")
        run.scenarios[record.id] = record
        halves.append(str(write_report(tmp_path / name, run, strict=False)[0]))
    assert main(["--merge", *halves, "--output", str(tmp_path / "whole")]) == 0
    whole = from_json(json.loads((tmp_path / "whole" / "results.json").read_text()))
    assert list(whole.scenarios) == ["storybook-fp32", "storybook-fp16"]
    assert whole.notes == ["common"]
    assert whole.recorded_at == "2026-11-21"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "cannot be read"),
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "no record of a run"),
        ('{"schema": 99}', "schema"),
        ('{"schema": 1}', "results.json"),
    ],
)
def test_what_is_no_results_file_is_refused_in_one_sentence_that_names_it(
    content: str | None, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "results.json"
    if content is not None:
        path.write_text(content)
    assert main([str(path), "--output", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert str(path) in said
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()
