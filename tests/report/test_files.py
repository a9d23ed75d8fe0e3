"""The report's files: whole, escaped, short enough, and refused before anything is measured."""

from __future__ import annotations

import html
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.records.outcome import Outcome
from fixtures.records.run import RESULTS, ScenarioRecord
from fixtures.report import files
from fixtures.report.comparison import Comparison
from fixtures.report.files import LIMIT, ReportError, markdown, write_files, write_report
from fixtures.report.terminal import UNLIMITED, render
from tests.support.running import run_suite
from tests.support.runs import run_record, scenario_record, verdict

NAMES = ["results.json", "summary.md", "report.html"]


def scenario(technique: str, outcome: Outcome, sentence: str = "why") -> ScenarioRecord:
    judged = verdict(f"storybook-{technique}", outcome)
    return scenario_record(technique, wall_ms=120.0, verdicts=[replace(judged, text=sentence)])


MIXED = run_record(
    scenario("fp16", Outcome.REGRESSION, "fp16 is slower"),
    scenario("bf16", Outcome.PASS),
    scenario("sdpa", Outcome.INCONCLUSIVE, "sdpa is undecided for noise"),
    scenario("tiny_vae", Outcome.IMPROVEMENT, "tiny_vae needs less"),
    scenario_record("tf32", unsupported="needs CUDA"),
)


# The summary


def test_counts_and_failures_the_undecided_too_if_strict_come_first_and_then_all_figures() -> None:
    text = markdown(MIXED, strict=False)
    assert text.index("1 failed") < text.index("fp16 is slower") < text.index("technique ")
    assert (
        "**Failed**\n\n- storybook-fp16: fp16 is slower\n\n"
        "**Undecided**\n\n- storybook-sdpa: sdpa is undecided"
    ) in text
    assert "\n\n**Improved**\n\n- storybook-tiny\\_vae: tiny\\_vae needs less\n" in text
    _, _, folded = text.partition("<details><summary>All figures</summary>\n\n<pre>\n")
    figures, _, end = folded.partition("</pre>\n</details>\n")
    assert html.unescape(figures) == render(MIXED, width=UNLIMITED, color=False)
    assert end == ""
    strict = markdown(MIXED, strict=True)
    assert not [title for title in ("**Undecided**", "**Improved**") if title in strict]
    assert "- storybook-sdpa: sdpa is undecided for noise" in strict[strict.index("**Failed**") :]


def test_a_summary_that_would_be_too_long_leaves_the_figures_out_and_says_so() -> None:
    many = run_record(*(scenario(f"technique{number}", Outcome.PASS) for number in range(2000)))
    text = markdown(many, strict=False)
    assert len(text) <= LIMIT
    assert "2000 judged" in text
    assert "too many for a summary" in text


# The files


def test_results_of_head_and_base_are_whole_and_no_file_is_left_half_written(
    tmp_path: Path,
) -> None:
    base = run_record(scenario("fp16", Outcome.PASS))
    folder = tmp_path / "new" / "report"
    assert write_report(folder, MIXED, strict=False) == [folder / name for name in NAMES]
    assert {path.name for path in folder.iterdir()} == {*NAMES}
    comparison = Comparison(("base", "head"), base, (), (), 0)
    written = write_report(folder, MIXED, strict=False, comparison=comparison)
    assert [path.name for path in written] == [*NAMES, "base.json"]
    assert {*folder.iterdir()} == {*written}
    assert written[0].read_text() == RESULTS.dump(MIXED, indent=1) + "\n"
    summary = markdown(MIXED, strict=False, comparison=comparison)
    assert written[1].read_text(encoding="utf-8") == summary
    assert written[3].read_text() == RESULTS.dump(base, indent=1) + "\n"


def test_on_github_the_summary_is_added_to_the_job_s_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n")
    monkeypatch.setenv(files.STEP_SUMMARY, str(page))
    write_report(tmp_path / "report", MIXED, strict=False)
    assert page.read_text(encoding="utf-8").startswith("before\n## Performance on cpu")


@pytest.mark.parametrize("place", ["", "missing/page.md"])
def test_a_page_of_github_s_that_cannot_be_written_is_a_warning(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(files.STEP_SUMMARY, str(tmp_path / place))
    written = write_report(tmp_path / "report", MIXED, strict=False)
    assert all(path.is_file() for path in written)
    said = capsys.readouterr().err
    assert said.startswith(f"Warning: {files.STEP_SUMMARY} {tmp_path / place} cannot be written (")
    assert said.endswith(f"; the summary is in {tmp_path / 'report' / 'summary.md'}.\n")
    assert said.count("\n") == 1


def test_a_full_disk_leaves_the_old_report_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path, {"results.json": "old"})

    def full(path: Path, content: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "check_writable", lambda folder: None)
    monkeypatch.setattr(files, "write_whole", full)
    with pytest.raises(ReportError, match=r"incomplete.*No space left"):
        write_report(tmp_path, MIXED, strict=False)
    assert (tmp_path / "results.json").read_text() == "old"


# As pytest writes them


@pytest.mark.long
def test_a_run_writes_its_report_and_names_the_files(tmp_path: Path) -> None:
    folder = tmp_path / "report"
    result = run_suite(f"--perf-report={folder}", "-k", "test_activation and [storybook-bf16]")
    assert result.returncode == 0, result.stdout + result.stderr
    said = " ".join(result.stdout.split())  # a long line is wrapped
    assert f"Report written: {', '.join(str(folder / name) for name in NAMES)}" in said
    assert list(RESULTS.read(folder / "results.json").scenarios) == ["storybook-bf16"]
