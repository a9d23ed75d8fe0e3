"""What would make the nearest way fit, with figures that are made up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from fixtures.commands.fit.smaller import what_would_fit
from fixtures.devices.simulated.profiles import PROFILES
from fixtures.measuring.trial import Trial
from fixtures.records.fit import Configuration
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.records.units import GIB
from fixtures.techniques import Technique
from fixtures.workloads import WORKLOADS, Workload
from tests.support import fits
from tests.support.fits import fit, way

CARD = replace(PROFILES["rtx-4090"], memory_bytes=24 * GIB)
FLUX, WAN = WORKLOADS["flux"], WORKLOADS["wan-1.3b"]
Bytes = Callable[[Workload, list[str]], float]


def asked(
    needed: Bytes, nearest: Configuration, workload: Workload = FLUX
) -> tuple[str, list[tuple[int, int, int]]]:
    """The sentence, and the calls that were tried."""
    calls = []

    def attempt(changed: Workload, techniques: Sequence[Technique]) -> Trial:
        call, names = changed.call, [one.id for one in techniques]
        calls.append((call.width, call.height, call.frames))
        return fits.trial(names, needed_bytes=int(needed(changed, names) * GIB))

    found = fit(nearest, way(("far",), needed_bytes=90 * GIB), way(("fits",)))
    return what_would_fit(found, workload, attempt, lambda one: one.on(CARD)), calls


NEAREST = way(("bf16",), needed_bytes=26 * GIB, peak_in="denoiser", refusal="..., in the VAE (X)")


def test_the_largest_size_that_fits_is_found_in_a_few_trials() -> None:
    said, calls = asked(lambda workload, _: 26 * (workload.call.width / 1024) ** 2, NEAREST)
    assert said == (
        "Nearest of what does not fit: bf16, which lacks 2.29 GiB; at 896x896 it would fit."
    )
    assert len(calls) <= 3
    said, calls = asked(lambda workload, _: 26 * workload.call.width / 300, NEAREST)
    assert said.endswith("; at 256x256 it would fit.")
    said, calls = asked(lambda *_: 40, NEAREST)
    assert said.endswith("; no smaller call that was tried would fit.")
    assert len(set(calls)) == len(calls)


def test_tiles_are_tried_first_where_the_vae_sets_the_peak() -> None:
    of_vae = replace(NEAREST, peak_in="vae")
    said, calls = asked(lambda _, names: 20 if "vae_tiling" in names else 30, of_vae)
    assert said.endswith("; with vae_tiling it would fit.")
    assert calls == [(1024, 1024, 1)]
    tiled = replace(of_vae, techniques=("vae_tiling", "bf16"))
    said, _ = asked(lambda *_: 30, tiled)
    assert said.endswith("would fit.")
    assert "with vae_tiling" not in said


def test_a_video_has_fewer_frames_before_it_is_smaller() -> None:
    frames = WAN.call.frames
    said, calls = asked(lambda workload, _: workload.call.frames / frames * 30, NEAREST, WAN)
    found = int(said.split("; with ")[1].split(" frames")[0])
    assert found < frames
    assert found % 4 == 1
    assert {(width, height) for width, height, _ in calls} == {(WAN.call.width, WAN.call.height)}


def test_weights_that_are_too_large_are_not_helped_by_a_smaller_call() -> None:
    refusal = "out of memory: 1 MiB requested, while weights are placed"
    said, calls = asked(lambda *_: 1, replace(NEAREST, refusal=refusal))
    assert said.endswith("lacks 2.29 GiB for its weights alone: no smaller call would fit.")
    assert not calls


def test_a_size_that_the_pipeline_refuses_does_not_fit() -> None:
    def refuse(workload: Workload, techniques: Sequence[Technique]) -> Trial:
        raise ScenarioError("flux-bf16", Outcome.BROKEN, "raised ValueError")

    said = what_would_fit(fit(NEAREST), FLUX, refuse, lambda one: one.on(CARD))
    assert said.endswith("no smaller call that was tried would fit.")


def test_where_everything_fits_nothing_is_said() -> None:
    assert what_would_fit(fit(way()), FLUX, lambda *_: fits.trial(), lambda one: one.on(CARD)) == ""
