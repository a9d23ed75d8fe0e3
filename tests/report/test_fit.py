"""What fits a card, on the terminal."""

from __future__ import annotations

from fixtures.records.fit import Fit
from fixtures.records.units import GIB
from fixtures.report.fit import render, why, why_not
from tests.support.fits import fit, way


def terminal(card: Fit) -> str:
    """What the terminal shows of a card."""
    return render(card, color=False)


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


def test_each_answer_says_why() -> None:
    pinned = way(("stream",), pinned_bytes=40 * GIB, program="stream()")
    paged = way(("paged",), bound_ms=1030.0, program="paged()")
    small = way(("small",), bound_ms=9000.0, needed_bytes=GIB, pageable_bytes=2 * GIB)
    card = fit(pinned, paged, small)
    fastest, least = card.answers()
    said = (
        "needs 10.00 GiB of the card and 1.00 GiB of host memory, and takes 1.03 s at least: "
        "within 5 % of the lowest bound of what fits without offloading, stream (1.00 s), which "
        "changes images more or takes more of the host (41.00 GiB); nothing else "
        "that fits takes less of the host"
    )
    assert why(card, *fastest) == said
    assert why(card, *least).endswith(
        "9.00 s at least: nothing else that fits needs less of the card"
    )
    text = " ".join(terminal(card).split())
    assert f"Fastest that fits and least of the host, paged: {said}. paged()" in text
    assert "Least of the card, small: needs 1.00 GiB" in text
    (alone,) = fit(pinned).answers()
    assert "41.00 GiB of host memory (40.00 GiB of it pinned)" in why(fit(pinned), *alone)


def test_host_memory_that_lacks_is_said() -> None:
    large = way(pinned_bytes=40 * GIB)
    small, roomy = (fit(large, host_bytes=host * GIB) for host in (35, 64))
    assert why_not(small, large) == "lacks 6.00 GiB of host memory"
    assert why_not(roomy, large) == ""


def test_what_images_lost_stands_beside_a_way_and_what_is_modelled_says_so() -> None:
    ssim = {"bf16": {"storybook": 0.9986, "storybook-dit": 0.9}}
    card = fit(way(), way(("nf4",), is_modelled=True), ssim=ssim)
    rows = {line.split()[0]: line for line in terminal(card).splitlines() if line.strip()}
    assert rows["bf16"].split()[-1] == "0.9000"
    assert rows["nf4"].split()[-1] == "-"
    assert "yes, modelled" in rows["nf4"]
    assert "modelled" not in rows["bf16"]


def test_each_reason_why_ways_were_not_tried_is_said_once() -> None:
    why = "needs torchao: python -m pip install torchao"
    text = terminal(fit(way(), not_run={"int8": why, "fp16": "it overflows", "fp8": why}))
    assert "not tried: int8, fp8: needs torchao" in text
    assert text.count("python -m pip install torchao") == 1
