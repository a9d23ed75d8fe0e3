"""What fits, in which order, and which way is the choice."""

from __future__ import annotations

import pytest

from fixtures.records.codec import RecordError
from fixtures.records.fit import FITS, MAX_CONTEXT_BYTES, MIN_CONTEXT_BYTES
from fixtures.records.units import GIB, MIB
from tests.support.fits import fit, way


@pytest.mark.parametrize(
    ("left_bytes", "fits"),
    [
        (MAX_CONTEXT_BYTES, "yes"),
        (MAX_CONTEXT_BYTES - 1, "barely"),
        (MIN_CONTEXT_BYTES, "barely"),
        (MIN_CONTEXT_BYTES - 1, "no"),
        (-GIB, "no"),
    ],
)
def test_a_context_needs_room_too(left_bytes: int, fits: str) -> None:
    one = way(needed_bytes=24 * GIB - left_bytes)
    assert fit(one).fits(one) == fits
    assert (fit(one).lacking_bytes(one) > 0) is (fits == "no")


def test_what_is_lacking_is_the_least() -> None:
    one = way(needed_bytes=25 * GIB)
    assert fit(one).lacking_bytes(one) == GIB + 300 * MIB


def test_more_host_memory_than_there_is_does_not_fit() -> None:
    one = way(pageable_bytes=10 * GIB, pinned_bytes=7 * GIB)
    assert fit(one).fits(one) == "yes"
    assert fit(one, host_bytes=17 * GIB).fits(one) == "yes"
    assert fit(one, host_bytes=16 * GIB).fits(one) == "no"


def test_what_fits_is_first_and_what_lacks_least_before_what_lacks_more() -> None:
    fast, slow = way(("fast",), bound_ms=1.0), way(("slow",), bound_ms=2.0)
    barely = way(("barely",), needed_bytes=24 * GIB - MIN_CONTEXT_BYTES, bound_ms=0.5)
    near, far = way(("near",), needed_bytes=25 * GIB), way(("far",), needed_bytes=30 * GIB)
    found = fit(far, barely, slow, near, fast)
    assert [one.name for one in found.in_order()] == ["fast", "slow", "barely", "near", "far"]
    assert found.choice() == fast
    assert fit(far, barely).choice() == barely
    assert fit(far, near).choice() is None
    assert fit().choice() is None


def test_of_ways_as_fast_as_each_other_the_one_that_takes_least_of_the_host_is_first() -> None:
    pinned = way(("pinned",), bound_ms=100.0, pinned_bytes=40 * GIB)
    pageable = way(("pageable",), bound_ms=105.0)
    slower = way(("slower",), bound_ms=105.1, pageable_bytes=0)
    found = fit(slower, pinned, pageable)
    assert found.choice() == pageable
    assert found.fastest() == pinned
    assert [one.name for one in found.in_order()] == ["pageable", "pinned", "slower"]
    barely = way(("barely",), needed_bytes=24 * GIB - MIN_CONTEXT_BYTES, pageable_bytes=0)
    assert fit(barely, pinned).choice() == pinned


def test_of_equally_fast_ways_the_smaller_is_first() -> None:
    small, large = way(("small",), needed_bytes=GIB), way(("large",), needed_bytes=2 * GIB)
    assert fit(large, small).choice() == small


def test_a_record_survives_its_file() -> None:
    record = fit(way(refusal="out of memory"), host_bytes=3, not_run={"fp16": "it overflows"})
    assert FITS.load(FITS.dump(record), "fit.json") == record


def test_another_schema_is_refused() -> None:
    text = FITS.dump(fit(way())).replace('"schema": 1', '"schema": 2')
    with pytest.raises(RecordError, match="schema 2"):
        FITS.load(text, "fit.json")
