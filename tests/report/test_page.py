"""The page: every scenario, every word escaped, nothing fetched, figures behind the text."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from fixtures.records.counts import OPERATIONS
from fixtures.records.images import FP32, STORED, Likeness, encoded
from fixtures.records.outcome import Outcome, Remedy
from fixtures.records.record import AtPeak
from fixtures.records.run import RunRecord, ScenarioRecord
from fixtures.records.timing import Interval
from fixtures.report.comparison import Comparison, Finding, Headline
from fixtures.report.page import MAX_OPEN, page
from tests.support.counting import counted
from tests.support.runs import MIB, run_record, scenario_record, timing, verdict

BLACK = encoded(np.zeros((1, 16, 16, 3)))[0]


class PageReader(HTMLParser):
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

    def attributes(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def read(run: RunRecord, **options: Any) -> PageReader:
    reader = PageReader()
    reader.feed(page(run, strict=False, **options))
    return reader


def shown_images(reader: PageReader) -> list[dict[str, str | None]]:
    """All but the one that a click fills."""
    others = reader.attributes("img")
    empty: dict[str, str | None] = {"src": "data:,", "alt": ""}
    assert others.count(empty) == 1
    return [image for image in others if image != empty]


def fp32(**figures: Any) -> ScenarioRecord:
    figures |= {"wall_ms": 100.0, "peak_bytes": 32 * MIB, "reference_peak_bytes": 32 * MIB}
    return scenario_record("fp32", Outcome.PASS, **figures)


def fp16(**figures: Any) -> ScenarioRecord:
    figures |= {"wall_ms": 150.0, "peak_bytes": 16 * MIB, "reference_peak_bytes": 32 * MIB}
    figures |= {"speedup": Interval(0.9, 0.8, 1.0), "ssim": 0.99}
    return scenario_record("fp16", Outcome.REGRESSION, **figures)


RUN = run_record(
    fp32(),
    fp16(),
    hardware={"threads": 1, "instruction_sets": ["avx2", "amx"], "power_w": None},
    notes=["a note"],
)


SEEN, UNSEEN = (Likeness(0.5, 0.5, 0.5, 0.4, most) for most in (0.9, 0.01))


REFRESH = 'nox -s refresh -- -k "[storybook-fp16]" --perf-reason "WHY"'


def illustrated_run() -> RunRecord:
    """A run with a scenario that fails, some that do not, and one that is unsupported."""
    grey, white = np.full((2, 16, 16, 3), 0.5), np.ones((2, 16, 16, 3))
    why = "needs a CUDA device with TF32 (Ampere or later)"
    detail = "aten::_convert_element_type 46 -> 86 (+40, 2 a step) in BasicTransformerBlock"
    failed = verdict("storybook-fp16", Outcome.REGRESSION, detail=detail)
    failed = replace(failed, remedy=Remedy(REFRESH, "accept it with"))
    return run_record(
        fp32(images=encoded(grey), documented_speedup=1.0),
        fp16(
            images=encoded(white),
            likeness={FP32: [SEEN, UNSEEN]},
            flip_maps={FP32: encoded(white * [1.0, 0.5, 0.0])},
            documented_speedup=2.63,
            verdicts=[failed],
        ),
        scenario_record("bf16", Outcome.NOT_JUDGED),
        scenario_record("tf32", unsupported=why, family="attention", documented_speedup=1.5),
    )


def test_every_scenario_has_a_row_with_its_verdict_figures_and_what_it_is_filtered_by() -> None:
    reader = read(RUN)
    bodies = [body for body in reader.attributes("tbody") if "data-name" in body]
    # What failed comes first.
    assert [body["data-name"] for body in bodies] == ["storybook-fp16", "storybook-fp32"]
    assert [body["data-status"] for body in bodies] == ["regression", "pass"]
    assert [body["class"] for body in bodies] == ["failed open", "passed"]
    for choice in reader.attributes("select"):
        assert f"data-{choice['id']}" in bodies[0]
    figures = [float(a["data-figure"] or "") for a in reader.attributes("td") if "data-figure" in a]
    assert figures == [150.0, 0.9, 16 * MIB, 0.5, 0.99, 100.0, 32 * MIB, 1.0]
    bars = [a["style"] for a in reader.attributes("span") if a.get("class") == "bar"]
    assert bars == ["width: 50.0%", "width: 100.0%"]
    for words in (
        *("✗ regression", "✓ pass", "1 failed"),
        *("avx2 amx", "None", "torch", "2.12.0", "a note"),
    ):
        assert words in reader.text
    assert "roofline bound" not in reader.text, "no scenario has the figure"
    gained = read(run_record(scenario_record("bf16", Outcome.IMPROVEMENT)))
    assert "▲ improvement" in gained.text


def test_what_the_script_and_the_rows_name_is_there() -> None:
    """Whether a click does what it should, the long tests see in a browser."""
    text = page(illustrated_run(), strict=False)
    reader = read(illustrated_run())
    ids = [attributes["id"] for _, attributes in reader.tags if "id" in attributes]
    assert len(ids) == len({*ids})
    assert {*re.findall(r'byId\("(\w+)"\)', text)} <= {*ids}
    openers = [b["aria-controls"] for b in reader.attributes("button") if "aria-controls" in b]
    assert len(openers) == 3
    assert {*openers} <= {*ids}


def test_of_many_failures_the_first_few_are_open() -> None:
    many = [scenario_record(f"t{number}", Outcome.BROKEN) for number in range(MAX_OPEN + 2)]
    reader = read(run_record(fp32(), *many))
    details = [row for row in reader.attributes("tr") if row.get("class") == "detail"]
    assert ["hidden" in row for row in details] == [False] * MAX_OPEN + [True] * 3
    opened = [a["aria-expanded"] for a in reader.attributes("button") if "aria-controls" in a]
    assert opened == ["true"] * MAX_OPEN + ["false"] * 3


def test_the_title_has_the_verdict_what_ran_and_when() -> None:
    record = fp16(changed=["torch 2.11.0 -> 2.12.0"], weights="random")
    moment = "2026-11-26T13:13:01+00:00"
    text = read(
        run_record(fp32(weights="random"), record, recorded_at=moment, commit="0123456789ab")
    ).text
    assert "1 of 2 failed on cpu, diffusers 0.41.0" in text
    top = text[: text.index("Find")]
    for words in (
        *("✗ 1 of 2 failed", "diffusers 0.41.0", "torch 2.12.0", "Testron 9000"),
        *(moment, "suite 0123456789ab", "storybook (weights: random)"),
        "changed since the baseline: torch 2.11.0 -> 2.12.0",
    ):
        assert words in top
    assert "2 of 2 passed" in read(run_record(fp32(), scenario_record("a", Outcome.PASS))).text
    assert "? 1 of 1 undecided" in read(run_record(scenario_record("a", Outcome.INCONCLUSIVE))).text


def test_what_limits_the_verdicts_stands_beside_their_counts_and_the_rest_at_the_end() -> None:
    record = fp16(
        verdicts=[verdict("storybook-fp16", Outcome.NOT_JUDGED, "SSIM", detail="no eyes")]
    )
    run = run_record(fp32(), record, notes=["gross losses alone", "storybook-fp16: 3 % less"])
    text = read(run).text
    top = text[: text.index("Find")]
    for words in (
        "latency judged for 1 of 2",
        "not judged on storybook: image of fp16: no eyes",
        "gross losses",
    ):
        assert words not in text[text.index("Notes") :]
        assert words in top
    assert "3 % less" in text[text.index("Notes on scenarios") :]
    assert "3 % less" not in top


def test_unsupported_scenarios_are_folded_and_each_reason_is_told_once() -> None:
    why = "needs torchao: python -m pip install torchao"
    names = ("int8", "fp8")
    run = run_record(fp32(), *(scenario_record(name, unsupported=why) for name in names))
    reader = read(run)
    assert [b["data-name"] for b in reader.attributes("tbody") if "data-name" in b] == [
        "storybook-fp32"
    ]
    folded = reader.text[reader.text.index("2 unsupported on this device") :]
    assert folded.count("needs torchao") == 1
    assert all(f"storybook-{name}" in folded for name in names)
    (fold,) = (a for a in reader.attributes("details") if a.get("id") == "unsupported")
    assert "open" not in fold


def test_what_all_verdicts_of_a_scenario_say_is_said_once_and_its_command_can_be_copied() -> None:
    name = "storybook-fp16"
    remedy = Remedy(REFRESH, "accept it with")
    verdicts = [
        replace(
            verdict(name, Outcome.REGRESSION, metric, remedy=remedy),
            text=f"{metric} grew",
            against="the baseline",
            changed=(),
        )
        for metric in ("peak memory", "counts")
    ]
    reader = read(run_record(fp16(verdicts=verdicts)))
    text = " ".join(reader.text.split())
    assert "✗ peak memoryregressionpeak memory grew ✗ countsregressioncounts grew" in text
    for words in (f"Accept it with:{REFRESH}Copy", "Changed since the baseline: no package"):
        assert text.count(words) == 1
    copies = [a for a in reader.attributes("button") if a.get("class") == "copy"]
    assert len(copies) == 1


def test_each_figure_is_marked_as_it_was_judged_and_what_changed_is_named() -> None:
    detail = "aten::mm 4 -> <8> (+4, 1 a step)"
    record = fp16(counts=counted({OPERATIONS: 8}), weights="<embedded>")
    record.verdicts = [
        verdict(record.id, Outcome.REGRESSION, "counts", detail=detail),
        verdict(record.id, Outcome.NOT_JUDGED, "latency", detail="nothing <recorded> here yet"),
        verdict(record.id, Outcome.PASS, "activation"),
    ]
    reader = read(run_record(record))
    marks = [a["title"] for a in reader.attributes("span") if "title" in a]
    assert marks == ["not judged", "not judged", "not judged", "failed"]
    for words in (
        *("8✗", detail, "storybook (weights: <embedded>)"),
        "not judged on storybook: latency: nothing <recorded> here yet",
        "After each figure: ✓ = passed, ✗ = failed",
    ):
        assert words in reader.text
    assert "After each figure" not in read(run_record(scenario_record("fp16", wall_ms=1.0))).text


def test_the_detail_names_what_changed_and_who_held_memory_at_the_peak() -> None:
    full = fp16(
        changed=["torch 2.12.0 -> <2.13.0>"],
        at_peak=AtPeak("vae", {"small": 2, "<vae> made": 8}),
        work={"attention": (2, 10**12, 3000)},
    )
    reader = read(run_record(full))
    assert "Changed since the baseline: torch 2.12.0 -> <2.13.0>." in reader.text
    assert "At the peak, in the vae" in reader.text
    assert reader.text.index("<vae> made8") < reader.text.index("small2")
    assert "1.000" in reader.text  # TFLOP
    bars = [a["style"] for a in reader.attributes("span") if a.get("class") == "bar"]
    assert bars[-2:] == ["width: 100.0%", "width: 25.0%"]


def test_each_process_says_what_its_ratio_is_a_ratio_to_and_how_quiet_the_machine_was() -> None:
    frozen = scenario_record("old", timed_against="frozen", timings=[timing(2.0)])
    run = run_record(
        fp32(timings=[timing(0.567)], timed_against="the control workload"),
        fp16(timings=[timing(1.5)], timed_against="fp32"),
        frozen,
    )
    text = read(run).text
    assert "process 1: x0.567 of the control workload's latency; load 0.5" in text
    assert "process 1: x1.500 of fp32's latency" in text
    assert "process 1: x2.000 of frozen's latency" in text


def pictures(run: RunRecord, name: str) -> list[tuple[str | None, str | None]]:
    """What is shown of a scenario: what stands for a blind reader, and the image."""
    images = read(run).attributes("img")
    of = f" of {name}"
    return [
        ((image["alt"] or "").removesuffix(of), image["src"])
        for image in images
        if (image["alt"] or "").endswith(of)
    ]


def test_images_stand_beside_fp32_s_with_a_map_of_where_they_differ() -> None:
    run = illustrated_run()
    reference, candidate = run.scenarios["storybook-fp32"], run.scenarios["storybook-fp16"]
    assert pictures(run, "storybook-fp32") == [
        (f"fp32, image {number}", image) for number, image in enumerate(reference.images, 1)
    ]
    maps = candidate.flip_maps[FP32]
    assert pictures(run, "storybook-fp16") == [
        ("fp16, image 1", candidate.images[0]),
        ("fp32, image 1", reference.images[0]),
        ("FLIP error from fp32, image 1", maps[0]),
        ("fp16, image 2", candidate.images[1]),
        ("fp32, image 2", reference.images[1]),
        ("FLIP error from fp32, image 2", maps[1]),
    ]
    assert all(image["alt"] for image in shown_images(read(run)))
    assert read(run).text.count("FLIP error from fp32, image 1") == 1


def test_an_image_that_is_fp32_s_is_shown_alone() -> None:
    white, grey = (encoded(np.full((1, 16, 16, 3), value)) for value in (1.0, 0.5))
    run = run_record(fp32(images=grey), fp16(images=white, likeness={FP32: [UNSEEN]}))
    assert pictures(run, "storybook-fp16") == [("fp16", white[0])]
    moved = fp16(images=white, stored_images=grey, flip_maps={STORED: [BLACK]})
    assert pictures(run_record(fp32(images=grey), moved), "storybook-fp16") == [
        ("fp16", white[0]),
        ("baseline", grey[0]),
        ("FLIP error from the baseline", BLACK),
    ]
    # Where FLIP cannot be computed there is no map.
    no_map = fp16(images=white, stored_images=grey)
    assert pictures(run_record(no_map), "storybook-fp16") == [
        ("fp16", white[0]),
        ("baseline", grey[0]),
    ]


@pytest.mark.parametrize(
    ("likeness", "same"),
    [([UNSEEN], True), ([SEEN], False), ([Likeness(1.0, 0.0, 0.0)], False), ([], False)],
    ids=["nobody sees it", "seen", "without FLIP", "unknown"],
)
def test_an_image_that_nobody_can_tell_from_fp32_s_is_marked(
    likeness: list[Likeness], same: bool
) -> None:
    """The script shows no small copy of it beside the scenario's name."""
    run = run_record(fp16(images=[BLACK], likeness={FP32: likeness} if likeness else {}))
    (block,) = (
        attributes
        for attributes in read(run).attributes("div")
        if "images" in (attributes.get("class") or "")
    )
    assert ("same" in (block["class"] or "")) == same


def test_a_scenario_shows_both_sides_of_a_comparison() -> None:
    white = encoded(np.ones((1, 16, 16, 3)))
    base, head = run_record(fp16(images=[BLACK])), run_record(fp16(images=white))
    slower = verdict("storybook-fp16", Outcome.REGRESSION, "latency")
    figure = replace(slower, baseline=100.0, measured=150.0, detail="mm +2")
    finding = Finding(Outcome.REGRESSION, "mm +2 <i>", "latency +50.0 %", ("storybook-fp16",))
    finding = replace(finding, checks="<u> 1.5", program="print('<b>')")
    headline = Headline("mixed", ["FLUX: peak 1.00 -> 2.00 GiB"])
    sides = ("<s>", "head"), base
    compared = Comparison(*sides, ["torch 1 -> 2"], [figure], 3, [finding], headline)
    reader = read(head, comparison=compared)
    order = ["✗ mixed", "FLUX: peak 1.00 -> 2.00 GiB", "base: <s>", "1 finding: 1 failed"]
    order += ["Measure it on a card: <u> 1.5", "print('<b>')", "Every figure that changed"]
    order += ["Head, judged against base", "1 failed"]
    places = [reader.text.rindex(words) for words in order]
    assert places == sorted(places)
    folded = [each for each in reader.attributes("details") if "open" not in each]
    assert len(folded) >= 2
    assert "latency100 ms150 ms+50.0 %regressionmm +2" in reader.text
    for words in (
        *("base: <s>", "Changed packages: torch 1 -> 2. 1 figure changed, 3 figures unchanged."),
        *("1 finding: 1 failed", "regression: mm +2 <i>", "Changed since base: "),
    ):
        assert words in reader.text
    images = {image["alt"]: image["src"] for image in reader.attributes("img")}
    assert (images["base, image 1"], images["head, image 1"]) == (BLACK, white[0])
    assert "base, image 1" not in page(head, strict=False)


@pytest.mark.parametrize(
    "words", ["<img src=x onerror=alert(1)>", "</script><b>", '"><i>', "{{ 7 * 7 }}"]
)
def test_words_from_outside_are_no_markup(words: str) -> None:
    run = run_record(
        scenario_record(words, Outcome.BROKEN),
        device_key=words,
        notes=[words],
        software={"torch": words},
        hardware={words: [words]},
        weights=words,
    )
    reader = read(run)
    assert not {tag for tag, _ in reader.tags} & {"i"}
    assert shown_images(reader) == []
    assert reader.text.count(words) >= 6
    assert not any(name.startswith("on") for _, attributes in reader.tags for name in attributes)


def test_nothing_is_fetched_from_anywhere() -> None:
    text = page(illustrated_run(), strict=False)
    assert not re.search(r"href=|url\(|@import|https?://|fetch\(", text)
    assert set(re.findall(r'src="([^"]{0,15})', text)) == {"data:image/webp", "data:,"}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.0, -1.0])
def test_figures_that_are_no_figures_can_be_shown(value: float) -> None:
    broken = scenario_record(
        "fp16",
        Outcome.BROKEN,
        wall_ms=value,
        documented_speedup=value,
        ssim=value,
        speedup=Interval(value, value, value),
        timings=[timing()],
        peak_bytes=MIB,
    )
    simulated = scenario_record("bf16", workload="sd15", bound_ms=value, peak_bytes=0)
    assert "✗ broken" in read(run_record(fp32(), broken, simulated)).text


def test_an_empty_run_is_a_page_too() -> None:
    assert "nothing judged" in read(RunRecord()).text
