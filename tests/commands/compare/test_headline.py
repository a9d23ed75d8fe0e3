"""A comparison begins with a word and the calls that moved, the worst first."""

from __future__ import annotations

import pytest

from fixtures.commands.compare.comparing import Compared, not_run, verdicts_on
from fixtures.commands.compare.headline import headline_of
from fixtures.devices.simulated.profiles import PROFILES
from fixtures.metrics.latency_verdicts import LATENCY
from fixtures.records.outcome import Outcome, Verdict
from fixtures.records.run import RESERVED, WHOLE, ScenarioRecord
from fixtures.records.units import GIB
from fixtures.report.comparison import MAX_CALLS
from fixtures.verdicts.case import SideCase
from tests.support.runs import failure, run_record, scenario_record, verdict

CARDS = tuple(PROFILES)


def call(name: str, peak_gib: float, cards: tuple[str, ...] | None = CARDS) -> ScenarioRecord:
    peaks = {WHOLE: round(peak_gib * GIB), RESERVED: round((peak_gib + 0.5) * GIB)}
    return scenario_record(name, title=f"FLUX, {name}", component_peak_bytes=peaks, cards=cards)


def compared(*pairs: tuple[ScenarioRecord, ScenarioRecord], more: list[Verdict]) -> Compared:
    verdicts = [
        judged
        for base, head in pairs
        for judged in verdicts_on(head, SideCase(base.id, None, {}, base=base), ("peak_memory",))
    ]
    base, head = (run_record(*side) for side in zip(*pairs, strict=True))
    return Compared(base, head, [*verdicts, *more])


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        (CARDS, CARDS, "; fits the same cards"),
        ((), (), "; fits no card that can be simulated"),
        (CARDS, CARDS[2:], "; no longer fits RTX 3060 (11.6 GiB), T4 (14.7 GiB)"),
        (CARDS[3:], CARDS[2:], "; now fits RTX 4060 Ti (15.6 GiB)"),
        (None, CARDS, ""),
    ],
)
def test_a_call_is_told_in_words_with_its_peak_and_its_cards(
    before: tuple[str, ...] | None, now: tuple[str, ...] | None, words: str
) -> None:
    pair = call("fp16", 4.65, before), call("fp16", 4.9, now)
    assert headline_of(compared(pair, more=[])).calls == [
        "FLUX, fp16: peak 4.65 -> 4.90 GiB (+0.25 GiB), reserved 5.15 -> 5.40 GiB (+0.25 GiB)"
        + words
    ]


def test_what_no_longer_runs_comes_first_then_losses_then_gains_and_no_equals() -> None:
    names = {"gain": 0.5, "much": 2.0, "more": 1.1, "equal": 1.0, "slow": 1.0, "fails": 1.0}
    slower = verdict("storybook-slow", Outcome.REGRESSION, LATENCY.name)
    failed = not_run("storybook-fails", head=failure(Outcome.BROKEN, "it does not work"))
    figures = {"measured": 150.0, "baseline": 100.0}
    headline = headline_of(
        compared(
            *((call(name, 4.0), call(name, 4 * factor)) for name, factor in names.items()),
            more=[Verdict(**{**vars(slower), **figures}), failed],
        )
    )
    assert headline.word == "mixed"
    assert [line.partition(";")[0].partition(",")[2].split(" (")[0] for line in headline.lines] == [
        " fails: no longer runs",
        " much: peak 4.00 -> 8.00 GiB",
        " slow: latency 100 ms -> 150 ms",
        " more: peak 4.00 -> 4.40 GiB",
        " gain: peak 4.00 -> 2.00 GiB",
    ]


def test_ten_calls_are_named_and_a_word_stands_alone_where_none_moved() -> None:
    many = [(call(f"t{n}", 4.0), call(f"t{n}", 5.0 + n)) for n in range(MAX_CALLS + 2)]
    headline = headline_of(compared(*many, more=[]))
    assert len(headline.lines) == MAX_CALLS + 1
    assert (headline.lines[-1], headline.result) == ("and 2 more", "failed")
    for outcome, word in (
        (Outcome.REGRESSION, "regression"),
        (Outcome.IMPROVEMENT, "improvement"),
        (Outcome.INCONCLUSIVE, "undecided"),
        (Outcome.PASS, "no change"),
    ):
        same = call("fp16", 4.0), call("fp16", 4.0)
        headline = headline_of(compared(same, more=[verdict(same[0].id, outcome, "operations")]))
        assert headline.word == word
        assert headline.lines == ["no call's peak memory or latency moved beyond its limit"]
