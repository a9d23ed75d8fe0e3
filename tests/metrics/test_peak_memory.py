"""Peak memory: the limits of each source, every component, and what cannot be a peak."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from fixtures.metrics.limits import MATERIAL, Limits
from fixtures.metrics.peak_memory import MEMORY_TOLERANCES, METRIC
from fixtures.records.outcome import Outcome, Verdict
from fixtures.records.record import AtPeak
from fixtures.records.units import GIB, MemorySource
from tests.metrics.cases import case, judged_peak
from tests.support.counting import counted
from tests.support.runs import MIB, entry, scenario_record


def judged(
    whole: float = 512 * MIB,
    *,
    source: MemorySource = "ledger",
    limits: Limits = MATERIAL,
    **others: Any,
) -> Verdict:
    """A verdict on the case's peaks with some components replaced."""
    peaks: Any = {"whole": whole, "denoiser": 500 * MIB, **others}
    return judged_peak(case(limits=limits), peaks, source)


EXACT = Limits(exact=True)


@pytest.mark.parametrize(
    ("source", "limits", "margin"),
    [
        *((source, MATERIAL, 8 * MIB) for source in MEMORY_TOLERANCES),
        ("replay", EXACT, 0),
        ("ledger", EXACT, 536_870),
        ("allocator", EXACT, 5_368_709),
        ("replay", Limits(allowed=0.25), 128 * MIB),
    ],
)
def test_a_peak_at_the_limit_passes_and_one_byte_more_fails(
    source: MemorySource, limits: Limits, margin: int
) -> None:
    highest, lowest = 512 * MIB + margin, 512 * MIB - margin
    verdict = judged(highest, source=source, limits=limits)
    assert verdict.outcome is Outcome.PASS
    assert (verdict.measured, verdict.baseline) == (highest, 512 * MIB)
    assert verdict.limit == pytest.approx(highest, abs=1)
    assert judged(highest + 1, source=source, limits=limits).outcome is Outcome.REGRESSION
    assert judged(lowest, source=source, limits=limits).outcome is Outcome.PASS
    assert judged(lowest - 1, source=source, limits=limits).outcome is Outcome.IMPROVEMENT


@pytest.mark.parametrize(
    ("source", "peak", "margin"),
    [
        ("replay", 2000, 40),  # 2 % at most
        ("ledger", 2000, 1024),
        ("allocator", 2000, MIB),
        ("replay", 4000 * MIB, 20 * MIB),  # 0.5 %
    ],
)
def test_what_is_material_depends_on_the_size(source: MemorySource, peak: int, margin: int) -> None:
    of = case(entry=entry(component_peak_bytes={"whole": peak}))
    at_limit = judged_peak(of, {"whole": peak + margin}, source)
    above = judged_peak(of, {"whole": peak + margin + 1}, source)
    assert (at_limit.outcome, above.outcome) == (Outcome.PASS, Outcome.REGRESSION)


def test_a_peak_that_nothing_measured_is_not_judged_or_missed_where_one_is_stored() -> None:
    compiled = case(entry=entry(component_peak_bytes={}), compiled=True)
    unseen = judged_peak(compiled, {})
    assert unseen.outcome is Outcome.NOT_JUDGED
    assert unseen.detail == "what compiled code allocates is not seen here"
    missed = judged_peak(case(), {})
    assert missed.outcome is Outcome.BROKEN
    assert "no peak was measured, but" in missed.sentence


def test_figures_that_round_to_the_same_are_told_apart_by_their_bytes() -> None:
    on = case(entry=entry(component_peak_bytes={"whole": 10 * GIB}))
    above = judged_peak(replace(on, limits=EXACT), {"whole": 10 * GIB + 1}, "replay")
    assert "10,737,418,241 bytes is +<0.001 % against" in above.sentence
    assert above.detail == "whole 10,737,418,241 bytes (limit 10,737,418,240 bytes)"


@pytest.mark.parametrize(
    ("others", "outcome", "words"),
    [
        ({"denoiser": 509 * MIB}, Outcome.REGRESSION, "peak memory (denoiser)"),
        ({}, Outcome.REGRESSION, "'denoiser' was not measured"),
        ({"denoiser": 500 * MIB, "vae": MIB}, Outcome.NO_BASELINE, "'vae' has no baseline"),
    ],
)
def test_a_component_is_seen_behind_an_unchanged_whole(
    others: dict[str, int], outcome: Outcome, words: str
) -> None:
    verdict = judged_peak(case(), {"whole": 512 * MIB, **others})
    assert verdict.outcome is outcome
    assert words in verdict.sentence


def test_a_failing_peak_names_what_is_alive_more_and_what_that_module_does_more_often() -> None:
    before = {"vae weights float16": 9 * MIB, "vae made float16 in Encoder": 4 * MIB}
    now = {"vae weights float16": 9 * MIB, "vae made float16 in Decoder": 64 * MIB}
    peaks = {"denoiser": 576 * MIB, "whole": 576 * MIB}
    more = counted({}, {"aten::clone in Decoder": 4}).beside(entry().counts)
    record = scenario_record(
        "fp16", component_peak_bytes=peaks, counts=more, at_peak=AtPeak("vae", now)
    )
    for stored, held in ((AtPeak("vae", before), True), (None, False)):
        on = case(entry=entry(at_peak=stored), memory_source="replay")
        (verdict,) = METRIC.judge(on, record)
        assert verdict.outcome is Outcome.REGRESSION
        cause = "alive at the peak: vae made float16 +64.00 MiB in Decoder (clone +4 there)"
        assert verdict.text.startswith("peak memory (whole)")
        assert verdict.text.endswith(f"; {cause}") is held


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.0, -1.0])
def test_an_impossible_peak_is_broken(value: float) -> None:
    assert judged(value).outcome is Outcome.BROKEN
    assert judged(denoiser=value).outcome is Outcome.BROKEN
