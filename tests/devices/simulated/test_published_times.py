"""The arithmetic of the study of published times: what is held out, fits, errors and orders."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fixtures.devices.simulated.profiles import PROFILES
from fixtures.techniques import CATALOGUE
from fixtures.workloads import WORKLOADS
from tests.support.published.forecasts import FITS, KINDS, Timed, errors, order, pairs_by
from tests.support.published.times import Run, held_out, runs, tables

CARDS = ("h100", "rtx-4090", "t4")
FACTORS = dict(zip(KINDS, (1.4, 2.5, 1.8, 3.0), strict=True))
LAUNCH, COPY = 4.0, 6.0
OF_CARD = {"h100": 1.0, "rtx-4090": 0.8, "t4": 2.0}


def made(by_card: bool = False) -> list[Timed]:
    """Times of calls that take exactly what the factors say: some wait for the host's launches."""
    random = np.random.default_rng(0)
    times = []
    for index in range(30):
        card = CARDS[index % len(CARDS)]
        kinds = random.uniform(0.1, 3.0, len(KINDS))
        launches, copies = random.uniform(0.1, 6.0), random.uniform() * (index % 5 == 0)
        device = float(kinds @ list(FACTORS.values())) * (OF_CARD[card] if by_card else 1)
        taken = float(max(device, LAUNCH * launches) + COPY * copies)
        bound = float(max(kinds.sum(), launches) + copies)
        times.append(Timed(card, taken, bound, tuple(kinds), launches, copies))
    return times


def one(bound_s: float, published_s: float, card: str = "t4") -> Timed:
    """A time of which only the bound matters."""
    return Timed(card, published_s, bound_s)


def test_a_source_is_held_out_as_a_whole_and_half_of_them_are() -> None:
    sources = {run.source for run in runs()}
    out = held_out(sources)
    assert out < sources
    assert len(out) == len(sources) // 2
    assert held_out({"a", "b", "c"}) == {"b"}  # by SHA-256: c, b, a


def test_runs_are_of_known_workloads_techniques_and_cards() -> None:
    assert len(runs()) >= 40
    assert len(set(runs())) == len(runs())
    for run in runs():
        assert run.workload in WORKLOADS
        assert [CATALOGUE[name].id for name in run.techniques] == list(run.techniques)
        assert run.card in PROFILES
        assert run.source.startswith("https://")
        assert (run.calls is None) == (run.unit != "s"), run


def test_a_rate_is_turned_into_seconds() -> None:
    run = replace(runs()[0], published=4.0, calls=None)
    assert replace(run, unit="it/s").published_s == 0.25
    assert replace(run, unit="s/it").published_s == 4.0


@pytest.mark.parametrize(
    ("name", "by_card"),
    [
        ("one factor a kind of operation", False),
        ("by kind and generation", True),
        ("by kind and card", True),
    ],
)
def test_a_fit_finds_the_factors_that_times_were_made_with(name: str, by_card: bool) -> None:
    times = made(by_card)
    assert max(errors(FITS[name](times[:24]), times[24:])) < 0.03
    assert max(errors(FITS["one factor"](times[:24]), times[24:])) > 0.15


def test_factors_by_kind_alone_do_not_tell_cards_apart() -> None:
    times = made(by_card=True)
    assert max(errors(FITS["one factor a kind of operation"](times[:24]), times[24:])) > 0.15


def test_a_card_that_was_not_seen_has_the_factor_of_all() -> None:
    forecast = FITS["one factor a card"]([one(1, 2, "h100"), one(1, 8, "t4")])
    assert [forecast(one(3, 1, card)) for card in CARDS] == pytest.approx([6, 12, 24])


def test_an_error_is_relative_to_what_was_published_and_has_no_sign() -> None:
    bound = FITS["the bound itself"]([])
    assert errors(bound, [one(2, 4), one(5, 4)]) == pytest.approx([0.5, 0.25])


def test_an_order_counts_only_bounds_that_tell() -> None:
    first, same, slower, faster = one(1, 10), one(1.04, 9), one(2, 20), one(3, 5)
    pairs = [(first, same), (first, slower), (slower, first), (first, faster)]
    assert order(pairs, 1.05) == (3, 2)


def test_pairs_are_made_within_a_key_alone() -> None:
    a, b, c = one(1, 1), one(2, 2), one(3, 3)
    assert pairs_by([("x", a), ("y", b), ("x", c)]) == [(a, c)]


@pytest.mark.parametrize(("off", "good"), [(1.14, "yes"), (1.16, "no")])
def test_one_held_out_time_decides_whether_a_forecast_is_good_enough(off: float, good: str) -> None:
    def made_up(run: Run) -> Timed:
        published_s = 3.0 if run.offloads else 2.0
        bound_s = published_s / 2
        return Timed(run.card, published_s, bound_s, (bound_s,) * len(KINDS), 0, 0.1 * run.offloads)

    both = [(run, made_up(run)) for run in runs()]
    out = held_out({run.source for run in runs()})
    last = max(index for index, run in enumerate(runs()) if run.source in out)
    run, right = both[last]
    both[last] = (run, replace(right, published_s=right.published_s / off))
    lines = [line for line in tables(both) if line.startswith("| one factor |")]
    assert [line.split("|")[-2].strip() for line in lines] == [good]
