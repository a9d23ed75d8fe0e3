"""The timeline keeps the peak, whatever it merges, and says what was alive at it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.records.timeline import START, AtPeak, Recorder


def test_the_peak_names_its_operation_and_who_holds_what_was_not_let_go_before() -> None:
    recorder = Recorder()
    recorder.change("text encoder made", 10)
    recorder.change("text encoder made", -10)
    recorder.change("denoiser weights", 100)
    recorder.operation()
    recorder.change("denoiser made", 50)
    recorder.operation()
    recorder.change("denoiser made", -50)
    recorder.change("vae made", 30)
    timeline = recorder.timeline()
    assert timeline.live_bytes == (100, 150, 150)
    assert timeline.peak_at == 1
    assert recorder.at_peak == AtPeak(START, {"denoiser weights": 100, "denoiser made": 50})


def test_phases_begin_where_their_component_does() -> None:
    recorder = Recorder()
    recorder.operation()
    recorder.enter("denoiser")
    recorder.enter("denoiser")
    recorder.operation()
    recorder.enter("vae")
    assert recorder.timeline().phases == ((0, START), (1, "denoiser"), (2, "vae"))


def test_a_timeline_has_at_least_two_points() -> None:
    with pytest.raises(ValueError, match="two"):
        Recorder(1)


WIDE = settings(max_examples=100, deadline=None, derandomize=True, database=None)
CHANGES = st.lists(st.one_of(st.none(), st.integers(-20, 100)), max_size=200)


@WIDE
@given(changes=CHANGES, most=st.integers(2, 16))
def test_merging_points_keeps_the_peak_and_the_order(changes: list[int | None], most: int) -> None:
    few, all_of_them = Recorder(most), Recorder(10_000)
    for change in changes:
        for recorder in (few, all_of_them):
            if change is None:
                recorder.operation()
            else:
                recorder.change("held", change)
    merged, whole = few.timeline(), all_of_them.timeline()
    assert len(merged.live_bytes) <= most
    assert max(merged.live_bytes, default=0) == max(whole.live_bytes, default=0)
    for place, point in enumerate(merged.live_bytes):
        part = whole.live_bytes[place * merged.stride : (place + 1) * merged.stride]
        assert point == max(part)
    assert few.at_peak == all_of_them.at_peak
