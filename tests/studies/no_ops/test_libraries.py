"""Weights that are stored quantized act, those that stay as they are do not; other libraries.

What needs a library of the groups `quantization` and `optional` is skipped where it is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from fixtures.devices import Device
from fixtures.devices.phases import denoiser
from fixtures.studies.no_ops.calls import BY_LIBRARIES, QUANTIZED, call_of, calls, technique_of
from fixtures.studies.no_ops.comparison import difference
from fixtures.studies.no_ops.making import PLAIN, Call, reloaded
from fixtures.studies.no_ops.trial import Found
from fixtures.techniques import CATALOGUE
from fixtures.techniques.quantized import load_quantized, with_config
from fixtures.workloads import Workload
from tests.studies.no_ops.trying import trials, tried
from tests.support.libraries import skipped_without_libraries

Apply = Callable[[Workload, Device], Iterator[Any]]


def quantizing(apply: Apply) -> Call:
    """The call of a technique that has no lines, by no library."""
    return call_of(replace(CATALOGUE["quanto_int8"], apply=apply, libraries=()))


def needing(name: str, *more: Any) -> Any:
    """A row, skipped where its library is not installed."""
    marks = skipped_without_libraries(CATALOGUE[technique_of(name)])
    return pytest.param(name, *more, marks=marks, id="-".join((name, *more[:1])))


def test_weights_that_stay_as_they_are_are_silent() -> None:
    def as_they_are(workload: Workload, device: Device) -> Iterator[Any]:
        yield load_quantized(workload, device, with_config(None))

    assert tried(quantizing(as_they_are)) == Found("this", "silent")


def test_weights_that_are_stored_smaller_act() -> None:
    def smaller(workload: Workload, device: Device) -> Iterator[Any]:
        import torch

        pipeline = load_quantized(workload, device, with_config(None))
        model = denoiser(pipeline)
        model.enable_layerwise_casting(torch.float8_e4m3fn, compute_dtype=model.dtype)
        yield pipeline

    assert tried(quantizing(smaller)).verdict == "acts"


def test_what_loading_alone_changes_is_not_the_technique() -> None:
    """Weights that lie about on the device are of the pipeline without the technique, too."""

    def loaded(workload: Workload, device: Device) -> Iterator[Any]:
        import torch

        pipeline = load_quantized(workload, device, with_config(None))
        pipeline.vae.left_over = torch.zeros(1 << 20, device=device.torch_device)
        yield pipeline

    call = quantizing(loaded)

    assert tried(call).verdict == "acts"
    assert tried(replace(call, beside=call.making)) == Found("this", "silent")


@pytest.mark.parametrize("name", ["flux", pytest.param("sd15", marks=pytest.mark.long)])
def test_loading_again_changes_nothing(name: str) -> None:
    assert not difference(trials(name).without()[0], trials(name).without(reloaded)[0])


def test_a_technique_that_quantizes_is_compared_with_weights_that_are_loaded_again() -> None:
    assert call_of(CATALOGUE["quanto_int8"]).beside is reloaded
    assert call_of(CATALOGUE["vae_tiling"]).beside is PLAIN


def test_a_technique_that_cannot_be_applied_is_refused() -> None:
    def refusing(workload: Workload, device: Device) -> Iterator[Any]:
        raise ValueError("no such layer")
        yield

    found = tried(quantizing(refusing))

    assert found == Found("this", "refused", "ValueError: no such layer")


def test_what_a_technique_is_compared_with_is_run_once() -> None:
    assert trials("flux").without(reloaded) is trials("flux").without(reloaded)


@pytest.mark.parametrize("name", [needing(one) for one in QUANTIZED])
def test_quantized_weights_act(name: str) -> None:
    found = tried(calls()[name])

    assert found.verdict == "acts"
    assert found.why.startswith("operations +")


@pytest.mark.parametrize(
    ("name", "workload", "verdict", "why"),
    [
        needing("deep_cache", "sd15", "acts", "operations -"),
        needing("deep_cache", "flux", "refused", "'FluxPipeline' object has no attribute 'unet'"),
        needing("token_merging", "sd15", "acts", "operations +"),
        needing("token_merging", "flux", "refused", "no attribute 'named_modules'"),
        needing("token_merging of the denoiser", "sd15", "acts", "operations +"),
        needing("token_merging", "sdxl", "silent", ""),
        needing("token_merging of the denoiser", "flux", "refused", "in the call, IndexError"),
    ],
)
def test_other_libraries_act_on_unets_at_most(
    name: str, workload: str, verdict: str, why: str
) -> None:
    found = tried(BY_LIBRARIES[name], workload)

    assert found.verdict == verdict
    assert why in found.why
