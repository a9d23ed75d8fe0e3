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

from fixtures.catalogue.matrix import Scenario
from fixtures.catalogue.techniques import CATALOGUE
from fixtures.catalogue.techniques.placement import group_hooks
from fixtures.catalogue.techniques.registry import models
from fixtures.catalogue.techniques.snapshots import record_snapshots
from fixtures.catalogue.techniques.technique import ActivationContext
from fixtures.catalogue.workloads import Workload
from fixtures.devices.simulated.ordering import DEFAULT
from fixtures.devices.simulated.runtime import Stream
from fixtures.records.images import Images
from fixtures.records.outcome import ScenarioError
from fixtures.worker.failures import scenario_errors
from tests.support.differences import ssim
from tests.support.simulated_runs import shared_device, small_drawing

MIN_SSIM = 0.99
Spoil = Callable[[Any, pytest.MonkeyPatch], None]


@cache
def workload() -> Workload:
    return small_drawing()


@cache
def reference() -> Images:
    device = shared_device().with_values()
    with device.entered(), CATALOGUE["fp32"].applied(workload(), device) as pipeline:
        return workload().draw(pipeline)


def sound(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """No fault."""


def failure(technique: str, spoil: Spoil, patch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Which check fails first of a technique with a fault, and its sentence; ("", "") if none."""
    device = shared_device().with_values()
    scenario = Scenario(workload(), CATALOGUE[technique])
    try:
        with scenario_errors(scenario, device), scenario.running(device) as pipeline:
            spoil(pipeline, patch)
            with record_snapshots(pipeline, device) as snapshots, device.observe(pipeline) as trace:
                images = workload().draw(pipeline)
            context = ActivationContext(pipeline, trace, snapshots, workload(), device)
            inactive = scenario.technique.activation_check(context)
            del pipeline, context
    except ScenarioError as error:
        return error.outcome.value, error.reason
    if inactive:
        return "not active", inactive
    if trace.faults:
        return "fault", next(iter(trace.faults.values()))
    return ("image", "") if ssim(images, reference()) < MIN_SSIM else ("", "")


def leave_on_the_host(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    pipeline.unet.mid_block.attentions[0].to("cpu")


def outdate_a_host_copy(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """As of weights that were changed after their copies for offloading were made."""
    weight = pipeline.unet.conv_out.weight
    for hook in group_hooks(pipeline.unet):
        if weight in (hook.group.cpu_param_dict or {}):
            hook.group.cpu_param_dict[weight] = (hook.group.cpu_param_dict[weight] * 5).detach()


def forget_waits(pipeline: Any, patch: pytest.MonkeyPatch, *, of_default: bool) -> None:
    """Let the host go on where it should wait for the default stream, or for any other."""
    wait = Stream.synchronize

    def synchronize(stream: Stream) -> None:
        if (stream.number == DEFAULT) != of_default:
            wait(stream)

    patch.setattr(Stream, "synchronize", synchronize)


def never_offload(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ModuleGroup, "offload_", lambda group: None)


def record_streams(pipeline: Any, patch: pytest.MonkeyPatch) -> None:
    """Offload as `record_stream=True` does, which waits for the default stream nowhere."""
    for model in models(pipeline).values():
        for hook in group_hooks(model):
            hook.group.record_stream = True


def read_from_the_host(pipeline: Any, patch: pytest.MonkeyPatch, *, waits: bool) -> None:
    """Copy the image to the host without a wait, and read it."""
    process = pipeline.image_processor.postprocess

    def postprocess(image: Any, **options: Any) -> Any:
        host = image.to("cpu", non_blocking=True)
        if waits:
            torch.cuda.synchronize()
        return process(host, **options)

    patch.setattr(pipeline.image_processor, "postprocess", postprocess)


COPIED_IN = "aten::_to_copy at diffusers/hooks/group_offloading.py:"
READS = " on the default stream reads a tensor (float16 ("
FREED = "may still use: it was freed without a wait or a record_stream"


@pytest.mark.parametrize(
    ("technique", "spoil", "check", "words"),
    [
        ("group_offload_stream", sound, "", []),
        ("group_offload_stream", record_streams, "", []),
        ("fp16", partial(read_from_the_host, waits=True), "", []),
        ("fp16", leave_on_the_host, "broken", ["on the same device", "cpu", "cuda:0"]),
        ("group_offload_stream", outdate_a_host_copy, "image", []),
        ("group_offload_leaf", never_offload, "not active", ["stayed on cuda"]),
        ("group_offload_block", never_offload, "not active", ["stayed on cuda"]),
        (
            "group_offload_stream",
            partial(forget_waits, of_default=False),
            "fault",
            [READS, COPIED_IN, "and nothing makes it wait"],
        ),
        (
            "group_offload_stream",
            partial(forget_waits, of_default=True),
            "fault",
            [COPIED_IN, " writes a tensor (float16 (", FREED],
        ),
        (
            "fp16",
            partial(read_from_the_host, waits=False),
            "fault",
            ["reads on the host what aten::_to_copy at ", "the host does not wait for the copy"],
        ),
    ],
)
def test_a_fault_is_found_by_the_check_that_is_for_it_and_a_sound_pipeline_by_none(
    technique: str, spoil: Spoil, check: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failed, sentence = failure(technique, spoil, monkeypatch)
    assert failed == check, sentence
    assert [word for word in words if word not in sentence] == []
