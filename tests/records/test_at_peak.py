"""What was alive at the peak, and in which phase."""

from __future__ import annotations

from fixtures.records.at_peak import START, AtPeak, PeakRecorder


def test_the_peak_has_its_phase_and_who_holds_what_was_not_let_go_before() -> None:
    recorder = PeakRecorder()
    assert recorder.at_peak == AtPeak(START, {})
    recorder.change("text encoder made", 10)
    recorder.change("text encoder made", -10)
    recorder.change("denoiser weights", 100)
    recorder.phase = "denoiser"
    recorder.change("denoiser made", 50)
    recorder.change("denoiser made", -50)
    recorder.phase = "vae"
    recorder.change("vae made", 50)
    assert recorder.at_peak == AtPeak("denoiser", {"denoiser made": 50, "denoiser weights": 100})
