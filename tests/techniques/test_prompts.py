"""Prompts encoded beforehand: the same picture, no encoder left, and what is said of a half."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from fixtures.devices.cpu import CpuDevice
from fixtures.devices.phases import denoiser
from fixtures.measuring.observation import observe
from fixtures.scenarios import Scenario
from fixtures.techniques import CATALOGUE, prompts
from fixtures.workloads import WORKLOADS, Workload
from tests.support.half_done import STEPS, WARM_UP_STEPS, HalfDone, complaint_at_rest, nothing
from tests.support.small_workloads import small_workload

# What XL warns of, with or without it.
pytestmark = [
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:`upcast_vae` is deprecated:FutureWarning"),
]

NAME = "prompt_embeddings"
STORED = ("storybook", "storybook-dit")
DIT = WORKLOADS["storybook-dit"]


CPU = CpuDevice()


@cache
def brief(name: str) -> Workload:
    workload = WORKLOADS[name] if name in STORED else small_workload(name)
    call = workload.call
    side_px = 64 if name in STORED else call.width
    height_px = side_px if name in STORED else call.height
    return replace(workload, call=replace(call, steps=STEPS, width=side_px, height=height_px))


def drawn(technique: str, workload: Workload, **changes: Any) -> Any:
    with CATALOGUE[technique].applied(workload, CPU) as pipeline:
        return workload.draw(pipeline, **changes)


@pytest.mark.parametrize("name", CATALOGUE[NAME].settings)
def test_it_draws_the_same_picture_to_the_last_bit(name: str) -> None:
    workload = brief(name)
    plain, encoded = (observe(Scenario(workload, CATALOGUE[id_]), CPU) for id_ in ("fp32", NAME))
    np.testing.assert_array_equal(encoded.images, plain.images)
    assert encoded.inactive is None
    assert not encoded.faults
    assert "text_encoder" in plain.component_peak_bytes
    assert "text_encoder" not in encoded.component_peak_bytes
    assert encoded.component_peak_bytes["denoiser"] < plain.component_peak_bytes["denoiser"]


def test_another_prompt_is_encoded_when_it_is_asked_for() -> None:
    """As the calibration does, which draws several with one pipeline."""
    workload, other = brief("storybook-dit"), {"prompt": "a red house", "seed": 3}
    wanted = [drawn("fp32", workload, **changes) for changes in ({}, other)]
    assert not np.array_equal(*wanted)
    with CATALOGUE[NAME].applied(workload, CPU) as pipeline:
        for image, changes in ((wanted[1], other), (wanted[0], {}), (wanted[1], other)):
            np.testing.assert_array_equal(workload.draw(pipeline, **changes), image)
        assert all(encoder() is None for encoder in pipeline.encoders)


def test_a_batch_is_of_as_many_prompts() -> None:
    workload = brief("storybook")
    call = replace(workload.call, batch=2, further_prompts=("a red house",))
    workload = replace(workload, call=call)
    np.testing.assert_array_equal(drawn(NAME, workload), drawn("fp32", workload))


def put_the_second_back(pipeline: Any) -> None:
    """Free one of two text encoders."""
    pipeline._pipeline.text_encoder_2 = DIT.load(torch.float32).text_encoder_2


def free_it_late(pipeline: Any) -> None:
    """Encode inside of the call, and free the encoder before the last step."""
    calls = iter(range(100))
    inner = pipeline._pipeline

    def at_a_step(*_: Any) -> None:
        # Each step has two prompts.
        number = next(calls)
        if number == 0:
            inner.text_encoder = DIT.load(torch.float32).text_encoder
        elif number == 2 * (WARM_UP_STEPS + STEPS) - 1:
            inner.text_encoder = None
        elif number == 2 * WARM_UP_STEPS:
            inner.text_encoder(torch.zeros(1, 4, dtype=torch.long))

    denoiser(inner).register_forward_pre_hook(at_a_step)


HALF_DONE = [
    HalfDone(NAME, "one of two encoders", put_the_second_back, "still has text_encoder_2"),
    HalfDone(NAME, "freed before the last step", free_it_late, "ran 1 times during", called=True),
]


@pytest.mark.parametrize("case", HALF_DONE, ids=str)
def test_a_half_done_technique_is_inactive(case: HalfDone) -> None:
    case.is_noticed(brief("storybook-dit"), CPU)


def test_an_encoder_that_somebody_keeps_is_not_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    encode, kept = prompts._embeddings, []

    def keeps(pipeline: Any, *more: Any) -> dict[str, Any]:
        kept.append(pipeline.text_encoder)
        return encode(pipeline, *more)

    monkeypatch.setattr(prompts, "_embeddings", keeps)
    said = complaint_at_rest(NAME, brief("storybook-dit"), CPU, nothing)
    assert said == "1 of 2 text encoders were not freed"


class OfOnePrompt:
    """Encodes one prompt at a time, as Flux does."""

    def encode_prompt(
        self, prompt: Sequence[str], prompt_2: None, max_sequence_length: int
    ) -> tuple[str, str, str]:
        assert prompt_2 is None
        return f"{prompt} in {max_sequence_length}", f"pooled {prompt}", "positions"


@pytest.mark.parametrize("negative", [{}, {"negative_prompt": ""}])
def test_where_one_prompt_is_encoded_at_a_time_the_other_is_encoded_too(
    negative: Mapping[str, str],
) -> None:
    arguments = {"prompt": ["a", "a"], "max_sequence_length": 9, "width": 64, **negative}
    embeddings = prompts._embeddings(OfOnePrompt(), CPU, ("one", "two"), arguments)
    assert (embeddings["one"], embeddings["two"]) == ("['a', 'a'] in 9", "pooled ['a', 'a']")
    others = {key: value for key, value in embeddings.items() if key.startswith("negative_")}
    assert others == (
        {"negative_one": "['', ''] in 9", "negative_two": "pooled ['', '']"} if negative else {}
    )
