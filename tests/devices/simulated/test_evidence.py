"""docs/evidence.md is what its command gives, of data in which everything is stated."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from fixtures.devices.simulated.profiles import find_card
from fixtures.records.units import GIB
from fixtures.settings import REPOSITORY
from fixtures.techniques import CATALOGUE
from tests.support.published import sources, verdicts
from tests.support.published.excluded import EXCLUDED
from tests.support.published.page import (
    FIGURES,
    GROUPS,
    PROTOCOL,
    Compared,
    compared_figure,
    compared_report,
    totals,
    words,
)
from tests.support.published.records import GB, Call, Figure, Report
from tests.support.published.reports import REPORTS
from tests.support.published.unseen import UNSEEN
from tests.support.published.workloads import workloads

PAGE = REPOSITORY / "docs" / "evidence.md"
FLUX = Figure(sources.TORCHAO, Call("flux"), "33.85", "h100")
MOST_FIGURES, MOST_REPORTS = 8, 16
"""Of one source, by the protocol."""
BRIEF, WHOLE = "VAE of Qwen-Image fp16, encode 512x512", ("denoiser of SDXL, bf16", "`sd3`, fp16")


def gib(size: float) -> int:
    return round(size * GIB)


@pytest.mark.parametrize("one", [*FIGURES, *REPORTS], ids=lambda one: one.source.name)
def test_every_figure_and_report_has_its_source_software_card_and_run(one: Figure | Report) -> None:
    assert one.source.url.startswith("https://")
    assert one.source.software
    assert find_card(one.card).memory_bytes > 0
    if isinstance(one.run, Call):
        assert one.run.workload in workloads()
        if not callable(one.run.how):
            assert {CATALOGUE[name].id for name in one.run.how} == set(one.run.how)


@pytest.mark.parametrize("figure", FIGURES, ids=words)
def test_every_figure_has_a_name_and_a_number(figure: Figure) -> None:
    assert words(figure)
    low, high = verdicts.published_bytes(figure)
    assert 0 < low <= high


def test_no_figure_is_there_twice() -> None:
    names = Counter(
        (figure.source.name, words(figure), figure.counter, figure.card, figure.bound)
        for figure in FIGURES
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_no_source_outweighs_the_others_and_there_are_as_many_as_were_asked_for() -> None:
    figures = Counter(figure.source.name for figure in UNSEEN)
    reports = Counter((report.source.name, report.outside) for report in REPORTS)
    assert max(figures.values()) <= MOST_FIGURES
    assert max(reports.values()) <= MOST_REPORTS
    inside = [figure for figure in UNSEEN if not figure.outside]
    assert len(inside) >= 30
    assert len({figure.source.name for figure in inside}) >= 8
    assert len(REPORTS) >= 40


def test_every_exclusion_has_a_source_and_a_reason() -> None:
    assert all(one.url.startswith("https://") and one.why for one in EXCLUDED)


@pytest.mark.parametrize(
    ("changes", "ours", "hit"),
    [
        ({}, gib(33.85), True),
        ({}, gib(33.85 * 1.0101 + 0.005), False),
        ({}, gib(33.85 * 1.0099 + 0.005), True),
        ({}, gib(33.85 * 0.9901 - 0.005), True),
        ({}, gib(33.85 * 0.9899 - 0.005), False),
        ({"published": "34"}, gib(34.8), True),  # rounds to 34, and 1 % of it
        ({"published": "34"}, gib(34.85), False),
        ({"published": "30 to 34"}, gib(32), True),
        ({"counter": "reserved"}, gib(33.85 * 1.0199), True),
        ({"counter": "reserved"}, gib(33.85 * 1.0203), False),
        ({"counter": "shown", "published": "34"}, gib(34.5 + 0.68 + 0.149), True),
        ({"counter": "shown", "published": "34"}, gib(34.5 + 0.68 + 0.151), False),
        ({"unit": GB}, 33_850_000_000, True),
        ({"unit": GB}, gib(33.85), False),
        ({"bound": "at most"}, gib(33.85), True),
        ({"bound": "at most"}, gib(33.85) + 1, False),
        ({"bound": "more than"}, gib(33.85) + 1, True),
        ({"bound": "more than"}, gib(33.85), False),
    ],
)
def test_a_hit_is_what_the_protocol_says(changes: dict[str, Any], ours: int, hit: bool) -> None:
    assert verdicts.is_hit(replace(FLUX, **changes), ours) == hit


def test_the_deviation_is_from_the_nearest_figure() -> None:
    nights = replace(FLUX, published="30 to 34")
    assert verdicts.deviation(nights, gib(32)) == pytest.approx(0)
    assert verdicts.deviation(nights, gib(35.7)) == pytest.approx(0.05)
    assert verdicts.deviation(nights, gib(27)) == pytest.approx(-0.1)


def test_totals_count_each_group_and_kind_by_itself() -> None:
    figures = [
        Compared("unseen", "allocated", "", True),
        Compared("unseen", "allocated", "", False),
        Compared("seen", "allocated", "", True),
        Compared("outside", "bounds", "", False),
    ]
    rows = list(totals(figures, [Compared("unseen", "", "", True)]))
    assert "| allocated | 1 of 2 (50 %) | 1 of 1 (100 %) | - |" in rows
    assert "| bounds | - | - | 0 of 1 (0 %) |" in rows
    assert "| all figures | 1 of 2 (50 %) | 1 of 1 (100 %) | 0 of 1 (0 %) |" in rows
    assert "| fits, or out of memory | 1 of 1 (100 %) | - | - |" in rows


def sections() -> dict[str, list[str]]:
    """The rows of each table of the page, by its heading."""
    parts = re.split(r"^## (.*)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {
        heading: [line for line in body.splitlines() if line.startswith("| ")][1:]
        for heading, body in zip(parts[1::2], parts[2::2], strict=True)
    }


def test_the_page_begins_with_the_protocol_and_has_every_figure_and_report() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text.startswith(PROTOCOL.read_text(encoding="utf-8"))
    urls = {*(one.source.url for one in FIGURES), *(one.source.url for one in REPORTS)}
    assert all(f"]({url})" in text for url in urls)
    assert all(f"[{one.what}]({one.url})" in text for one in EXCLUDED)
    rows = sections()
    for group in GROUPS:
        figures = [one for one in FIGURES if verdicts.group_of(one.seen, one.outside) == group]
        table = next(
            lines for heading, lines in rows.items() if heading.startswith(f"Figures, {group}")
        )
        assert len(table) == len(figures)
        for row, figure in zip(table, figures, strict=True):
            assert row.startswith(f"| {words(figure)} | ")
            assert f"[{figure.published} " in row


def test_the_page_counts_what_its_rows_say_and_every_miss_has_a_reason() -> None:
    rows = sections()
    for group, column in zip(GROUPS, (2, 3, 4), strict=True):
        figures = next(v for k, v in rows.items() if k.startswith(f"Figures, {group}"))
        reports = next(v for k, v in rows.items() if k.startswith("Fits") and f": {group}" in k)
        for name, lines, good in (
            ("all figures", figures, " hit "),
            ("fits, or out of memory", reports, " right "),
        ):
            total = next(row for row in rows["Totals"] if row.startswith(f"| {name} "))
            hits = [good in line.split("|")[-3] for line in lines]
            assert total.split("|")[column].strip() == verdicts.share(hits)
            assert all(
                line.split("|")[-2].strip()
                for line, hit in zip(lines, hits, strict=True)
                if not hit
            )


@pytest.mark.parametrize(
    "figure",
    [
        pytest.param(one, marks=[] if one.name == BRIEF else pytest.mark.long)
        for one in FIGURES
        if one.name in (BRIEF, *WHOLE)
    ],
    ids=lambda one: f"{one.name}-{one.counter}".replace(" ", "-"),
)
@pytest.mark.filterwarnings("ignore")
def test_a_row_of_the_page_is_what_the_command_gives(figure: Figure) -> None:
    assert compared_figure(figure).row in PAGE.read_text(encoding="utf-8").splitlines()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "report",
    [one for one in REPORTS if one.run.workload == "sd15" and one.card == "9.62GiB"][:2],
    ids=lambda one: str(one.fits),
)
def test_a_report_of_the_page_is_what_the_command_gives(report: Report) -> None:
    assert compared_report(report).row in PAGE.read_text(encoding="utf-8").splitlines()


def test_a_run_that_fails_is_a_miss_with_the_error_as_its_reason() -> None:
    def broken(_: object) -> Any:
        raise ValueError("no such model")

    failed = compared_figure(replace(FLUX, run=broken, name="broken", reason=""))
    assert not failed.hit
    assert "failed: no such model" in failed.row
