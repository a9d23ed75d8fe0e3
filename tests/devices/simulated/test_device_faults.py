"""What only a device with its own memory can get wrong is found, each by the check that is for it.

Values are computed at once and in the host's order, so a missing wait changes no image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from diffusers.hooks.group_offloading import ModuleGroup

from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.devices.simulated.ordering import DEFAULT
from fixtures.devices.simulated.runtime import Stream
from fixtures.measuring.observations import Observations
from fixtures.records.outcome import ScenarioError
from fixtures.scenarios import Scenario, find_scenario
from fixtures.techniques.placement import group_hooks
from fixtures.techniques.registry import models
from fixtures.workloads import Workload

STEPS = 3
Spoil = Callable[[Any], None]


def spoilt(technique: str, spoil: Spoil) -> Scenario:
    """The scenario of storybook, with few steps, and with a fault in its pipeline."""
    scenario = find_scenario("storybook", technique)
    workload, applied = scenario.workload, scenario.technique.applied

    def apply(workload: Workload, device: Any) -> Iterator[Any]:
        with applied(workload, device) as pipeline:
            spoil(pipeline)
            yield pipeline

    return replace(
        scenario,
        workload=replace(workload, call=replace(workload.call, steps=STEPS)),
        technique=replace(scenario.technique, apply=apply),
    )


@pytest.fixture(scope="module")
def observations() -> Observations:
    """The fp32 run is observed once for all."""
    return Observations(SimulatedDevice())


def failure(scenario: Scenario, observations: Observations) -> tuple[str, str]:
    """Which check fails first, and its sentence; ("", "") if none does.

    What fails is not kept: the next scenario has the same name.
    """
    once = Observations(observations.device)
    once._made.update(observations._made)
    try:
        observed = once.active(scenario)
    except ScenarioError as error:
        return error.outcome.value, error.reason
    if observed.fault:
        return "fault", observed.fault
    similarity = once.ssim(scenario)
    return ("image", "") if similarity < scenario.technique.min_ssim_on("storybook") else ("", "")


@pytest.fixture(autouse=True)
def fp32_is_known(observations: Observations) -> None:
    observations.active(spoilt("fp16", sound).reference)


def sound(pipeline: Any) -> None:
    """No fault."""


@pytest.mark.parametrize(
    "technique",
    [
        "fp16",
        "model_cpu_offload",
        "sequential_cpu_offload",
        "group_offload_leaf",
        "group_offload_block",
        "group_offload_stream",
    ],
)
def test_a_sound_pipeline_fails_nowhere(technique: str, observations: Observations) -> None:
    assert failure(spoilt(technique, sound), observations) == ("", "")


def leave_on_the_host(pipeline: Any) -> None:
    pipeline.unet.mid_block.attentions[0].to("cpu")


def test_a_module_that_was_left_on_the_host(observations: Observations) -> None:
    check, sentence = failure(spoilt("fp16", leave_on_the_host), observations)
    assert check == "broken"
    assert "on the same device" in sentence
    assert "cpu" in sentence
    assert "cuda:0" in sentence


def outdate_a_host_copy(pipeline: Any) -> None:
    """As of weights that were changed after their copies for offloading were made."""
    weight = pipeline.unet.conv_out.weight
    for hook in group_hooks(pipeline.unet):
        if weight in (hook.group.cpu_param_dict or {}):
            hook.group.cpu_param_dict[weight] = (hook.group.cpu_param_dict[weight] * 0.8).detach()


def test_a_stale_copy_of_a_weight(observations: Observations) -> None:
    assert failure(spoilt("group_offload_stream", outdate_a_host_copy), observations)[0] == "image"


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
    observations: Observations,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forget = partial(forget_waits, monkeypatch=monkeypatch, of_default=of_default)
    check, sentence = failure(spoilt("group_offload_stream", forget), observations)
    assert check == "fault"
    for one in words:
        assert one in sentence


def record_streams(pipeline: Any) -> None:
    """Offload as `record_stream=True` does, which waits for the default stream nowhere."""
    for model in models(pipeline).values():
        for hook in group_hooks(model):
            hook.group.record_stream = True


def test_record_stream_takes_the_place_of_the_wait(observations: Observations) -> None:
    assert failure(spoilt("group_offload_stream", record_streams), observations) == ("", "")


@pytest.mark.parametrize("technique", ["group_offload_leaf", "group_offload_block"])
def test_an_onload_without_an_offload(
    technique: str, observations: Observations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ModuleGroup, "offload_", lambda group: None)
    check, sentence = failure(spoilt(technique, sound), observations)
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


def test_a_result_that_is_read_before_it_is_there(observations: Observations) -> None:
    check, sentence = failure(
        spoilt("fp16", partial(read_from_the_host, waits=False)), observations
    )
    assert check == "fault"
    assert "reads on the host what aten::_to_copy at " in sentence
    assert "the host does not wait for the copy" in sentence
    assert failure(spoilt("fp16", partial(read_from_the_host, waits=True)), observations) == (
        "",
        "",
    )
