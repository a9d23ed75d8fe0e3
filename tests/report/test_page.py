"""The page: every scenario, every word escaped, nothing fetched, figures behind the text."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from fixtures.report.page import SORTED_BY, page
from fixtures.report.pictures import differences, encoded
from fixtures.report.record import Control, RunRecord, ScenarioRecord
from fixtures.report.terminal import MEASURED, SIMULATED
from fixtures.statistics import Interval
from fixtures.timeline import Timeline
from fixtures.verdicts import Outcome, Verdict

MIB = 2**20
BLACK = np.zeros((1, 16, 16, 3))


class _Reader(HTMLParser):
    """Collects tags with their attributes, and the text outside of scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._open and self._open[-1] == tag:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if not self._open:
            self.text += data


def read(run: RunRecord) -> _Reader:
    reader = _Reader()
    reader.feed(page(run, strict=False))
    return reader


def some_run() -> RunRecord:
    """A run with one red scenario, one that passes, and one that is unsupported."""
    reference, fp16 = (replace(record) for record in RUN.scenarios.values())
    grey, white = np.full((2, 16, 16, 3), 0.5), np.ones((2, 16, 16, 3))
    reference.pictures, fp16.pictures = encoded(grey), encoded(white)
    fp16.differences = differences(white, grey)
    run = run_of(reference, fp16)
    name = "storybook-tf32"
    run.scenarios[name] = ScenarioRecord(name, "storybook", "tf32", "attention", unsupported="CUDA")
    return run


def scenario(name: str, outcome: Outcome = Outcome.PASS, **figures: object) -> ScenarioRecord:
    record = ScenarioRecord(f"storybook-{name}", "storybook", name, "precision")
    for key, value in figures.items():
        setattr(record, key, value)
    record.verdicts.append(Verdict(record.id, "latency ratio", outcome, f"{name} says why"))
    return record


def run_of(*records: ScenarioRecord) -> RunRecord:
    run = RunRecord(device_key="cpu", hardware={"threads": 1, "instruction_sets": ["avx2", "amx"]})
    run.software = {"torch": "2.13.0"}
    run.scenarios = {record.id: record for record in records}
    run.notes = ["a note"]
    return run


RUN = run_of(
    scenario("fp32", latency_ms=100.0, peak_bytes=32 * MIB, reference_peak_bytes=32 * MIB),
    scenario(
        "fp16",
        Outcome.REGRESSION,
        latency_ms=150.0,
        speedup=Interval(0.9, 0.8, 1.0),
        peak_bytes=16 * MIB,
        reference_peak_bytes=32 * MIB,
        ssim=0.99,
    ),
)


def test_the_detail_names_what_changed_and_shows_rounds_and_memory() -> None:
    full = scenario("fp16", changed=["torch 2.12.0 -> <2.13.0>"], rounds_ms=[[[1.0, 2.0, 1.0]]])
    full.timeline = Timeline(
        1, (5, 9), ((0, "pipeline"),), 1, {"<vae> made": 9}, {"attention": (2, 10**12, 3000)}
    )
    seen = read(run_of(full))
    assert "Changed since the baseline: torch 2.12.0 -> <2.13.0>." in seen.text
    assert "<vae> made" in seen.text
    assert "1.000" in seen.text  # TFLOP
    charts = [attributes["aria-label"] or "" for tag, attributes in seen.tags if tag == "svg"]
    assert [chart.partition(" ")[0] for chart in charts] == ["Every", "Live"]


def test_controls_are_shown_once_with_their_likeness() -> None:
    run = replace(RUN, controls={"storybook": [Control("<black>", 0.123, encoded(BLACK)[0])]})
    seen = read(run)
    assert "<black>" in seen.text
    assert "0.123" in seen.text
    assert [a["alt"] for tag, a in seen.tags if tag == "img"][-1] == "storybook, <black>"


def test_every_scenario_has_a_row_with_what_it_is_filtered_by() -> None:
    bodies = [attributes for tag, attributes in read(RUN).tags if tag == "tbody"]
    assert [body["data-name"] for body in bodies] == ["storybook-fp32", "storybook-fp16"]
    assert [body["data-status"] for body in bodies] == ["pass", "regression"]


def test_a_verdict_is_told_by_sign_and_word_and_a_red_one_by_its_row_too() -> None:
    reader = read(RUN)
    assert "✗ regression" in reader.text
    assert "✓ pass" in reader.text
    assert [tag for tag, a in reader.tags if tag == "tr" and a.get("class") == "red"] == ["tr"]
    assert "latency ratio: regression. fp16 says why" in reader.text


def test_columns_without_a_figure_are_left_out_and_the_others_carry_theirs() -> None:
    reader = read(RUN)
    assert "floor" not in reader.text
    figures = [float(a["data-figure"] or "") for tag, a in reader.tags if "data-figure" in a]
    assert figures == [100.0, 32 * MIB, 1.0, 150.0, 0.9, 16 * MIB, 0.5, 0.99]
    assert {name for name, _ in (*MEASURED, *SIMULATED)} == SORTED_BY.keys()


def test_bars_are_as_long_as_the_memory_they_stand_for() -> None:
    widths = [a["style"] for tag, a in read(RUN).tags if a.get("class") == "bar"]
    assert widths == ["width: 100.0%", "width: 50.0%"]


@pytest.mark.parametrize(
    "words", ["<img src=x onerror=alert(1)>", "</script><b>", '"><i>', "{{ 7 * 7 }}"]
)
def test_words_from_outside_are_no_markup(words: str) -> None:
    run = run_of(scenario(words, Outcome.BROKEN))
    run.device_key = run.notes[0] = run.software["torch"] = words
    run.hardware = {words: [words]}
    reader = read(run)
    tags = {tag for tag, _ in reader.tags}
    assert not tags & {"img", "i"}
    assert reader.text.count(words) >= 6
    assert not any(name.startswith("on") for _, attributes in reader.tags for name in attributes)


def test_nothing_is_fetched_from_anywhere() -> None:
    text = page(some_run(), strict=False)
    assert not re.search(r"href=|url\(|@import|https?://|fetch\(", text)
    assert set(re.findall(r'src="(.{15})', text)) == {"data:image/webp", "data:image/svg+"}


def test_pictures_lie_over_the_reference_s_with_their_differences_beside_them() -> None:
    run = some_run()
    reference, fp16 = run.scenarios["storybook-fp32"], run.scenarios["storybook-fp16"]
    images = [attributes["src"] or "" for tag, attributes in read(run).tags if tag == "img"]
    assert [image for image in images if "webp" in image] == [
        *reference.pictures,
        *(one for pair in zip(reference.pictures, fp16.pictures, strict=True) for one in pair),
        *fp16.differences,
    ]
    assert all(attributes["alt"] for tag, attributes in read(run).tags if tag == "img")


def test_an_empty_run_is_a_page_too() -> None:
    reader = read(RunRecord())
    assert "0 judged" in reader.text


def test_machine_software_and_notes_are_on_the_page() -> None:
    text = read(RUN).text
    for words in ("avx2 amx", "torch", "2.13.0", "a note", "1 red"):
        assert words in text


def test_evidence_without_its_ratio_is_left_out() -> None:
    run = some_run()
    record = run.scenarios["storybook-fp16"]
    record.ratios, record.evidence = [1.5], ["load 0.5", "of a process that measured nothing"]
    text = read(run).text
    assert "process 1: ratio 1.500; load 0.5" in text
    assert "measured nothing" not in text
