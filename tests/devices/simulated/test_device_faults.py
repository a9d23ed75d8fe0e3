"""What only a device with its own memory can get wrong is found, each by the check that is for it.

Values are computed at once and in the host's order, so a missing wait changes no image.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest
import torch
from diffusers.hooks.group_offloading import ModuleGroup

from fixtures.devices.simulated.ordering import DEFAULT
from fixtures.devices.simulated.runtime import Stream
from fixtures.measuring.failures import scenario_errors
from fixtures.records.images import Images
from fixtures.records.outcome import ScenarioError
from fixtures.scenarios import Scenario
from fixtures.techniques import CATALOGUE
from fixtures.techniques.placement import group_hooks
from fixtures.techniques.registry import models
from fixtures.techniques.snapshots import record_snapshots
from fixtures.techniques.technique import ActivationContext
from fixtures.verdicts.likeness import ssim
from fixtures.workloads import Workload
from tests.support.simulated_runs import shared_device, small_drawing

MIN_SSIM = 0.99
Spoil = Callable[[Any], None]


@cache
def workload() -> Workload:
    return small_drawing()


@cache
def reference() -> Images:
    device = shared_device().with_values()
    with device.entered(), CATALOGUE["fp32"].applied(workload(), device) as pipeline:
        return workload().draw(pipeline)


def sound(pipeline: Any) -> None:
    """No fault."""


def failure(technique: str, spoil: Spoil = sound) -> tuple[str, str]:
    """Which check fails first of a technique with a fault, and its sentence; ("", "") if none."""
    device = shared_device().with_values()
    scenario = Scenario(workload(), CATALOGUE[technique])
    try:
        with scenario_errors(scenario, device), scenario.running(device) as pipeline:
            spoil(pipeline)
            with record_snapshots(pipeline, device) as snapshots, device.observe(pipeline) as trace:
                images = workload().draw(pipeline)
            context = ActivationContext(pipeline, trace, snapshots, workload(), device)
            inactive = scenario.technique.activation_check(context)
            del pipeline, context
    except ScenarioError as error:
        return error.outcome.value, error.reason
    if inactive:
        return "not active", inactive
    if fault := trace.race or trace.leak:
        return "fault", fault
    return ("image", "") if ssim(images, reference()) < MIN_SSIM else ("", "")


@pytest.mark.parametrize(
    "technique", ["model_cpu_offload", "sequential_cpu_offload", "group_offload_stream"]
)
def test_a_sound_pipeline_fails_nowhere(technique: str) -> None:
    assert failure(technique) == ("", "")


def leave_on_the_host(pipeline: Any) -> None:
    pipeline.unet.mid_block.attentions[0].to("cpu")


def test_a_module_that_was_left_on_the_host() -> None:
    check, sentence = failure("fp16", leave_on_the_host)
    assert check == "broken"
    assert "on the same device" in sentence
    assert "cpu" in sentence
    assert "cuda:0" in sentence


def outdate_a_host_copy(pipeline: Any) -> None:
    """As of weights that were changed after their copies for offloading were made."""
    weight = pipeline.unet.conv_out.weight
    for hook in group_hooks(pipeline.unet):
        if weight in (hook.group.cpu_param_dict or {}):
            hook.group.cpu_param_dict[weight] = (hook.group.cpu_param_dict[weight] * 5).detach()


def test_a_stale_copy_of_a_weight() -> None:
    assert failure("group_offload_stream", outdate_a_host_copy)[0] == "image"


def forget_waits(pipeline: Any, monkeypatch: pytest.MonkeyPatch, *, of_default: bool) -> None:
    """Let the host go on where it should wait for the default stream, or for any other."""
    wait = Stream.synchronize

    def synchronize(stream: Stream) -> None:
        if (stream.number == DEFAULT) != of_default:
            wait(stream)

    monkeypatch.setattr(Stream, "synchronize", synchronize)


COPIED_IN = "aten::_to_copy at diffusers/hooks/group_offloading.py:"


@pytest.mark.parametrize(
    ("of_default", "words"),
    [
        (
            False,
            (
                " on the default stream reads a tensor (float16 (",
                COPIED_IN,
                "and nothing makes it wait",
            ),
        ),
        (
            True,
            (
                COPIED_IN,
                " writes a tensor (float16 (",
                "may still use: it was freed without a wait or a record_stream",
            ),
        ),
    ],
    ids=["a weight comes too late", "a weight is freed while it is read"],
)
def test_a_missing_wait(
    of_default: bool,
    words: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forget = partial(forget_waits, monkeypatch=monkeypatch, of_default=of_default)
    check, sentence = failure("group_offload_stream", forget)
    assert check == "fault"
    for one in words:
        assert one in sentence


def record_streams(pipeline: Any) -> None:
    """Offload as `record_stream=True` does, which waits for the default stream nowhere."""
    for model in models(pipeline).values():
        for hook in group_hooks(model):
            hook.group.record_stream = True


def test_record_stream_takes_the_place_of_the_wait() -> None:
    assert failure("group_offload_stream", record_streams) == ("", "")


@pytest.mark.parametrize("technique", ["group_offload_leaf", "group_offload_block"])
def test_an_onload_without_an_offload(technique: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ModuleGroup, "offload_", lambda group: None)
    check, sentence = failure(technique)
    assert check == "not active"
    assert "stayed on cuda" in sentence


def read_from_the_host(pipeline: Any, *, waits: bool) -> None:
    """Copy the image to the host without a wait, and read it."""
    process = pipeline.image_processor.postprocess

    def postprocess(image: Any, **options: Any) -> Any:
        host = image.to("cpu", non_blocking=True)
        if waits:
            torch.cuda.synchronize()
        return process(host, **options)

    pipeline.image_processor.postprocess = postprocess


def test_a_result_that_is_read_before_it_is_there() -> None:
    check, sentence = failure("fp16", partial(read_from_the_host, waits=False))
    assert check == "fault"
    assert "reads on the host what aten::_to_copy at " in sentence
    assert "the host does not wait for the copy" in sentence
    assert failure("fp16", partial(read_from_the_host, waits=True)) == (
        "",
        "",
    )
