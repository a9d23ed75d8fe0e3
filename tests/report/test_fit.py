"""What fits a card, on the terminal and as a page."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.records.fit import Fit, Fits, ImageLoss
from fixtures.records.units import GIB, format_ms
from fixtures.report import fit_table
from fixtures.report.fit_chart import DIGIT_PX, DOT_PX, LINE_PX, Dot, fit_chart, fit_page
from fixtures.report.fit_words import much_of_the_host, why, why_not
from tests.support.fits import fit, way


def terminal(*cards: Fit) -> str:
    """What the terminal shows of cards."""
    return fit_table.render(Fits(list(cards)), color=False)


def page_of(*cards: Fit) -> str:
    """The page of cards."""
    return fit_page(Fits(list(cards)))


REFUSAL = "simulated out of memory: 2.00 GiB requested, in the VAE (Decoder)"


def test_the_table_has_every_way_in_order_and_the_program_of_the_choice() -> None:
    large = way(("bf16",), needed_bytes=30 * GIB, refusal=REFUSAL, program="large()")
    small = way(("fp8", "tiling"), copied_bytes=3 * GIB, program="small()")
    text = terminal(fit(large, small, not_run={"fp16": "it overflows"}))
    lines = text.splitlines()
    assert lines[0] == (
        "flux (width 1024, height 1024, steps 50, batch 1) on NVIDIA GeForce RTX 4090, 24.00 GiB"
    )
    rows = [line.split("  ")[0].strip() for line in lines if "   1.00 s" in line]
    assert rows == ["fp8 + tiling", "bf16"]
    assert "3.00 GiB" in text
    assert "bf16: lacks 6.29 GiB or more; out of memory: 2.00 GiB requested, in the VAE" in text
    assert "not tried: fp16: it overflows" in text
    assert text.endswith("less of the \nhost.\n\nsmall()\n")


def test_a_card_that_nothing_fits_is_named() -> None:
    nothing = fit(way(needed_bytes=30 * GIB))
    said = "Nothing of this fits NVIDIA GeForce RTX 4090."
    assert terminal(nothing).endswith(f"{said}\n")
    assert said in page_of(nothing)


def test_each_answer_says_why() -> None:
    pinned = way(("stream",), pinned_bytes=40 * GIB, program="stream()")
    paged = way(("paged",), bound_ms=1030.0, program="paged()")
    small = way(("small",), bound_ms=9000.0, needed_bytes=GIB, pageable_bytes=2 * GIB)
    found = fit(pinned, paged, small)
    fastest, least = found.answers()
    said = (
        "needs 10.00 GiB of the card and 1.00 GiB of host memory, and takes 1.03 s at least: "
        "within 5 % of the lowest bound of what fits without offloading, stream (1.00 s), which "
        "changes images more or takes more of the host (41.00 GiB); nothing else "
        "that fits takes less of the host"
    )
    assert why(found, fastest) == said
    assert why(found, least).endswith(
        "9.00 s at least: nothing else that fits needs less of the card"
    )
    text = " ".join(terminal(found).split())
    assert f"Fastest that fits and least of the host, paged: {said}. paged()" in text
    assert "Least of the card, small: needs 1.00 GiB" in text
    page = page_of(found)
    assert f"Fastest that fits and least of the host: <b>paged</b>: {said}." in page
    assert page.count('class="copy"') == 2
    (alone,) = fit(pinned).answers()
    assert "41.00 GiB of host memory (40.00 GiB of it pinned)" in why(fit(pinned), alone)


def test_much_host_memory_is_warned_of_and_what_lacks_is_said() -> None:
    large = way(pinned_bytes=40 * GIB)
    assert "41.00 GiB of host memory are more than many" in much_of_the_host(fit(large), large)
    roomy, tight = fit(large, host_bytes=64 * GIB), fit(large, host_bytes=48 * GIB)
    assert much_of_the_host(roomy, large) == ""
    assert "41.00 GiB are 85% of the host's memory" in much_of_the_host(tight, large)
    assert "Note: 41.00 GiB are 85% of the host's memory" in terminal(tight)
    assert "<b>Note:</b> 41.00 GiB are 85% of" in page_of(tight)
    assert "Note" not in terminal(roomy)
    small = fit(large, host_bytes=35 * GIB)
    assert why_not(small, large) == "lacks 6.00 GiB of host memory"
    assert why_not(roomy, large) == ""


def test_what_images_lost_stands_beside_a_way_and_what_is_modelled_says_so() -> None:
    losses = {
        "bf16": [ImageLoss("storybook", 0.9986, 0.028), ImageLoss("storybook-dit", 0.9, None)]
    }
    found = fit(way(), way(("nf4",), is_modelled=True), losses=losses)
    rows = {line.split()[0]: line for line in terminal(found).splitlines() if line.strip()}
    assert rows["bf16"].split()[-2:] == ["0.9000", "0.028"]
    assert rows["nf4"].split()[-2:] == ["-", "-"]
    assert "yes, modelled" in rows["nf4"]
    assert "modelled" not in rows["bf16"]
    assert 'data-label="SSIM">0.9000<' in page_of(found)
    assert "yes, modelled" in page_of(found)


def test_several_cards_are_a_row_each_and_what_runs_on_them_a_program_each() -> None:
    small = way(("offload",), needed_bytes=5 * GIB, bound_ms=9000.0, program="offload()")
    large = way(("bf16",), needed_bytes=20 * GIB, program="plain()")
    cards = [fit(large, small, memory_bytes=memory * GIB, **{}) for memory in (4, 8, 24, 48)]
    for card, name in zip(cards, ("A", "B", "C", "D"), strict=True):
        card.card = name
    text = terminal(*cards)
    lines = text.splitlines()
    assert lines[0] == "flux (width 1024, height 1024, steps 50, batch 1)"
    rows = {line.split()[0]: line.split() for line in lines if line[:2].strip() in set("ABCD")}
    assert rows["A"][3] == "nothing"
    assert rows["B"][3] == rows["B"][-3] == "offload"
    assert (rows["C"][3], rows["C"][-3]) == ("bf16", "offload")
    assert "offload, on B:\n\noffload()\n" in text
    assert "bf16, on C, D:\n\nplain()\n" in text
    page = page_of(*cards)
    assert page.count('href="#card-') == page.count('<h2 id="card-') == 4
    assert page.count("<svg") == 4


def test_the_page_escapes_what_it_is_given() -> None:
    evil = way(("<script>alert(1)</script>",), program="<b>", refusal="<i>", needed_bytes=99 * GIB)
    page = page_of(fit(evil, way(), not_run={"<u>": "<s>"}))
    for tag in ("<script>alert", "<i>", "<u>", "<s>"):
        assert tag not in page
    assert "&lt;script&gt;" in page


def test_the_page_names_what_is_under_test_first_and_each_reason_once() -> None:
    why = "needs torchao: python -m pip install torchao"
    card = fit(way(), not_run={"int8": why, "fp16": "it overflows", "fp8": why})
    page = page_of(card)
    assert page.index("<li>diffusers 0.42.1") < page.index("<li>torch 2.13.0")
    assert "<b>int8, fp8</b>: needs torchao" in page
    assert page.count("python -m pip install torchao") == 1
    assert "not tried: int8, fp8: needs torchao" in terminal(card)


# The chart


def test_the_chart_numbers_ways_as_the_table_does_and_has_its_unit_and_the_card() -> None:
    large = way(("fp32",), needed_bytes=30 * GIB, bound_ms=2000.0)
    alike = [way((name,), needed_bytes=6 * GIB, bound_ms=400.0) for name in ("tf32", "bf16")]
    asked = fit(large, *alike)
    chart = fit_chart(asked)
    assert chart is not None
    assert [way.name for way in asked.in_order()] == ["tf32", "bf16", "fp32"]
    first, second = chart.dots
    assert (first.label, first.fits, second.label, second.fits) == ("1, 2", True, "3", False)
    # Higher up is more, further right is longer.
    assert second.at[1] < chart.card_y < first.at[1]
    assert second.at[0] > first.at[0]
    assert chart.unit == "s"
    assert [text for _, text in chart.time_ticks] == ["0.5", "0.7", "1", "1.5", "2"]
    page = page_of(asked)
    assert "time of the call at least, s, logarithmic" in page
    assert "2.00 s" in page
    assert re.findall(r'data-label="no\. (\d)">(\w+)<', page) == [
        ("1", "tf32"),
        ("2", "bf16"),
        ("3", "fp32"),
    ]


@pytest.mark.parametrize("bound_ms", [999.0, 1000.0])
def test_the_chart_s_unit_is_that_of_the_table(bound_ms: float) -> None:
    chart = fit_chart(fit(way(bound_ms=bound_ms)))
    assert chart is not None
    assert format_ms(bound_ms).endswith(f" {chart.unit}")


@pytest.mark.parametrize("bound_ms", [0.0, float("inf"), float("nan")])
def test_without_times_there_is_a_page_without_a_chart(bound_ms: float) -> None:
    assert fit_chart(fit(way(bound_ms=bound_ms))) is None
    assert "<svg" not in page_of(fit(way(bound_ms=bound_ms)))
    assert fit_chart(fit()) is None


def boxes(dot: Dot) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Left, top, right and bottom of a point and of its numbers."""
    (x, y), (left, base) = dot.at, dot.label_at
    width = DIGIT_PX * len(dot.label)
    point = (x - DOT_PX, y - DOT_PX, x + DOT_PX, y + DOT_PX)
    return point, (left, base - LINE_PX + 3, left + width, base + 2)


@given(
    st.lists(st.tuples(st.floats(1.0, 60.0), st.floats(1000.0, 100_000.0)), min_size=1, max_size=8)
)
def test_the_numbers_of_a_point_cover_no_other_point_or_number(
    found: list[tuple[float, float]],
) -> None:
    ways = [way(needed_bytes=int(gib * GIB), bound_ms=ms) for gib, ms in found]
    chart = fit_chart(fit(*ways))
    assert chart is not None
    assert sorted(n for dot in chart.dots for n in dot.numbers) == [*range(1, len(ways) + 1)]
    drawn = [boxes(dot) for dot in chart.dots]
    labels = [label for _, label in drawn]
    for index, label in enumerate(labels):
        for other in [*(point for point, _ in drawn), *labels[:index]]:
            apart = (
                *(label[0] >= other[2], other[0] >= label[2]),
                *(label[1] >= other[3], other[1] >= label[3]),
            )
            assert any(apart)
