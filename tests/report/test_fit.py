"""What fits a card, on the terminal and as a page."""

from __future__ import annotations

from fixtures.records.units import GIB
from fixtures.report.fit_page import fit_page
from fixtures.report.fit_table import render, why_first, why_not
from tests.support.fits import fit, way

REFUSAL = "simulated out of memory: 2.00 GiB asked for, in the VAE (Decoder)"


def test_the_table_has_every_way_in_order_and_the_program_of_the_choice() -> None:
    large = way(("bf16",), needed_bytes=30 * GIB, refusal=REFUSAL, program="large()")
    small = way(("fp8", "tiling"), copied_bytes=3 * GIB, program="small()")
    text = render(fit(large, small, not_run={"fp16": "it overflows"}), color=False)
    lines = text.splitlines()
    assert lines[0] == (
        "flux (width 1024, height 1024, steps 50, batch 1) on NVIDIA GeForce RTX 4090, 24.00 GiB"
    )
    rows = [line.split("  ")[0].strip() for line in lines if line.rstrip().endswith("1.00 s")]
    assert rows == ["fp8 + tiling", "bf16"]
    assert "3.00 GiB" in text
    assert "bf16: lacks 6.29 GiB or more; out of memory: 2.00 GiB asked for, in the VAE" in text
    assert "not tried: fp16: it overflows" in text
    assert text.endswith(
        "First choice, fp8 + tiling: needs 10.00 GiB of the card and 1.00 GiB of host memory; at "
        "least 1.00 s, the lowest bound of what fits.\n\nsmall()\n"
    )


def test_nothing_that_fits_is_said() -> None:
    text = render(fit(way(needed_bytes=30 * GIB)), color=False)
    assert text.endswith("Nothing of this fits NVIDIA GeForce RTX 4090.\n")


def test_of_what_was_not_tried_nothing_is_said_but_its_names() -> None:
    found = fit(way(needed_bytes=30 * GIB), planned=3, untried=["fp16", "model_cpu_offload"])
    told = "Interrupted: 1 of 3 ways tried, not fp16, model_cpu_offload."
    for text in (render(found, color=False), fit_page(found)):
        assert told in text
        assert "Nothing that was tried fits NVIDIA GeForce RTX 4090." in text
    assert "Interrupted" not in render(fit(way()), color=False)


def test_why_the_first_choice_is_not_the_fastest_is_said() -> None:
    pinned = way(("stream",), pinned_bytes=40 * GIB)
    found = fit(pinned, way(("offload",), bound_ms=1030.0))
    why = (
        "needs 10.00 GiB of the card and 1.00 GiB of host memory; at least 1.03 s, within 5 % of "
        "the fastest, stream (1.00 s), which needs 41.00 GiB of host memory"
    )
    assert why_first(found) == why
    assert why in " ".join(render(found, color=False).split())
    assert why in fit_page(found)
    assert why_first(fit(pinned)).startswith(
        "needs 10.00 GiB of the card and 41.00 GiB of host memory (40.00 GiB of it pinned); at "
    )


def test_techniques_that_are_left_out_for_one_reason_are_one_line() -> None:
    found = fit(way(), not_run={"a": "no snippet", "b": "no card", "c": "no snippet"})
    assert "not tried: a, c: no snippet\n" in render(found, color=False)
    assert "<b>a, c</b>: no snippet" in fit_page(found)


def test_host_memory_that_lacks_is_said() -> None:
    one = way(pageable_bytes=10 * GIB)
    assert why_not(fit(one, host_bytes=4 * GIB), one) == "lacks 6.00 GiB of host memory"
    assert why_not(fit(one), one) == ""


def test_the_page_escapes_what_it_is_given() -> None:
    evil = way(("<script>alert(1)</script>",), program="<b>", refusal="<i>", needed_bytes=99 * GIB)
    page = fit_page(fit(evil, way(), not_run={"<u>": "<s>"}))
    for tag in ("<script>", "<i>", "<u>", "<s>"):
        assert tag not in page
    assert "&lt;script&gt;" in page
