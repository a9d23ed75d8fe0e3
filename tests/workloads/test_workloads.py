"""The full-size workloads: published sizes, calls, tokenizers, and images from small copies."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import diffusers
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import T5TokenizerFast

from fixtures.devices.phases import denoiser
from fixtures.scenarios import scenarios
from fixtures.techniques import CATALOGUE
from fixtures.verdicts.image_checks import check_images
from fixtures.workloads import (
    WORKLOADS,
    Call,
    default_workloads,
    sd15,
)
from fixtures.workloads.byte_tokenizer import T5_SPECIAL, byte_t5_tokenizer
from fixtures.workloads.calls import OTHER_PROMPT
from fixtures.workloads.random_weights import kept_in_fp32
from fixtures.workloads.twins import FRAMES
from fixtures.workloads.twins.small import BY_DEFAULT
from tests.support.fake_device import FakeDevice
from tests.support.small_workloads import small_workload

# Schedulers of diffusers turn tensors into arrays in a way that numpy 2 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def test_the_workloads_are_the_published_calls() -> None:
    calls = {
        name: (
            WORKLOADS[name].kind,
            *(call.width, call.height, call.frames, call.steps, call.guidance_scale),
            WORKLOADS[name].half,
        )
        for name in BY_DEFAULT
        for call in (WORKLOADS[name].call,)
    }
    assert calls == {
        "sd15": ("single", 512, 512, 1, 50, 7.5, "float16"),
        "sdxl": ("single", 1024, 1024, 1, 50, 5.0, "float16"),
        "sd3": ("transformer", 1024, 1024, 1, 28, 7.0, "float16"),
        "flux": ("transformer", 1024, 1024, 1, 50, 3.5, "bfloat16"),
        "cogvideox-5b": ("video", 720, 480, 49, 50, 6.0, "bfloat16"),
    }


def test_full_size_workloads_are_what_a_simulated_device_runs() -> None:
    assert default_workloads("simulated") == (
        *("sd15", "sd15-batch32", "sd15-4k", "sdxl", "sd3", "flux", "cogvideox-5b"),
    )
    assert default_workloads("cuda") == ("sd15", "sd15-batch32", "sd15-4k")


@pytest.mark.parametrize("name", BY_DEFAULT)
def test_a_small_copy_draws_images_that_depend_on_seed_and_prompt(name: str) -> None:
    workload = small_workload(name)
    pipeline = workload.load(torch.float32)
    images = workload.draw(pipeline, steps=1)
    check_images(images)
    call = workload.call
    assert images.shape == (call.frames, call.height, call.width, 3)
    assert call.frames == (FRAMES if name == "cogvideox-5b" else 1)
    assert np.array_equal(images, workload.draw(workload.load(torch.float32), steps=1))
    assert not np.array_equal(images, workload.draw(pipeline, seed=1, steps=1))
    assert not np.array_equal(images, workload.draw(pipeline, prompt="a bowl of fruit", steps=1))


@pytest.mark.parametrize("name", BY_DEFAULT)
def test_a_batch_holds_every_image_once(name: str) -> None:
    workload = small_workload(name)
    images = workload.draw(workload.load(torch.float32), batch=2, steps=1)
    assert len(images) == 2 * workload.call.frames
    first, second = np.split(images, 2)
    assert not np.array_equal(first, second)


def test_the_images_of_a_batch_have_its_prompts_in_turn() -> None:
    call = Call("one", 64, 64, 1, 7.5, batch=5, further_prompts=("two", "three"))
    assert call.prompts == ["one", "two", "three", "one", "two"]
    assert replace(call, batch=2).prompts == ["one", "two"]
    assert replace(call, further_prompts=()).prompts == ["one"] * 5
    workload = small_workload("sd15")
    pipeline = workload.load(torch.float32)
    same, other = (
        workload.draw(pipeline, batch=2, steps=1, further_prompts=further)
        for further in ((), ("a bowl of fruit",))
    )
    assert np.allclose(same[0], other[0], atol=1e-4)
    assert not np.allclose(same[1], other[1], atol=1e-4)


@pytest.mark.parametrize("name", BY_DEFAULT)
def test_latents_are_drawn_in_fp32_and_reach_the_denoiser_in_its_own_precision(name: str) -> None:
    workload = small_workload(name)
    seen: list[torch.Tensor] = []

    class StoppedError(Exception):
        """The first step tells."""

    def note(module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        seen.append(named["hidden_states"] if "hidden_states" in named else inputs[0])
        raise StoppedError

    for dtype in (torch.float32, torch.bfloat16):
        pipeline = workload.load(dtype)
        denoiser(pipeline).register_forward_pre_hook(note, with_kwargs=True)
        with pytest.raises(StoppedError):
            workload.draw(pipeline)
    full, half = seen
    assert (full.dtype, half.dtype) == (torch.float32, torch.bfloat16)
    torch.testing.assert_close(half.float(), full, rtol=2e-2, atol=2e-2)


def test_loading_copies_every_component() -> None:
    workload = small_workload("flux")
    one, other = workload.load(torch.float32), workload.load(torch.float32)
    for name in ("transformer", "text_encoder", "tokenizer_2", "vae", "scheduler"):
        assert getattr(one, name) is not getattr(other, name)
    one.transformer.proj_out.weight.zero_()
    assert other.transformer.proj_out.weight.abs().max() > 0
    assert dict(one.config) == dict(other.config)


# Precision


def device(base: torch.dtype, half: torch.dtype) -> Any:
    return SimpleNamespace(base_dtype=base, half_dtype=half)


def test_a_workload_of_bf16_runs_in_bf16_where_others_run_in_fp16() -> None:
    accelerator = device(torch.float16, torch.float16)
    cpu = device(torch.float32, torch.bfloat16)
    for name, half in (("sd15", torch.float16), ("flux", torch.bfloat16)):
        workload = WORKLOADS[name]
        assert workload.base_dtype(accelerator) is half
        assert workload.autocast_dtype(accelerator) is half
        assert workload.base_dtype(cpu) is torch.float32
        assert workload.autocast_dtype(cpu) is torch.bfloat16


def test_t5_keeps_its_output_layers_in_fp32_beside_fp16_alone() -> None:
    def encoder(dtype: torch.dtype) -> Any:
        return small_workload("flux").load(dtype).text_encoder_2

    half = encoder(torch.float16)
    kept = {name for name, tensor in half.named_parameters() if tensor.dtype == torch.float32}
    assert kept == {f"encoder.block.{block}.layer.1.DenseReluDense.wo.weight" for block in (0, 1)}
    assert kept == kept_in_fp32(half, torch.float16)
    assert {p.dtype for p in encoder(torch.bfloat16).parameters()} == {torch.bfloat16}
    assert not kept_in_fp32(half, torch.bfloat16)


def test_tied_weights_stay_tied() -> None:
    encoder = small_workload("flux").load(torch.float32).text_encoder_2
    assert encoder.shared.weight is encoder.encoder.embed_tokens.weight


def test_buffers_of_a_weight_file_have_the_precision_of_the_weights() -> None:
    transformer = small_workload("sd3").load(torch.float16).transformer
    assert transformer.pos_embed.pos_embed.dtype == torch.float16


# Tokenizers


def test_the_t5_tokenizer_is_a_real_one_with_the_published_special_tokens() -> None:
    tokenizer = byte_t5_tokenizer(16)
    assert isinstance(tokenizer, T5TokenizerFast)
    assert (tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.unk_token_id) == (0, 1, 2)
    assert len(tokenizer) == len(T5_SPECIAL) + 256
    assert tokenizer.model_max_length == 16


@pytest.mark.parametrize("prompt", ["", "a horse", "ünïcode, 馬 and 🐎!"])
def test_the_t5_tokenizer_has_a_token_for_every_byte(prompt: str) -> None:
    tokenizer = byte_t5_tokenizer(512)
    numbers = tokenizer(prompt).input_ids
    assert numbers[-1] == 1
    assert all(2 < number < len(tokenizer) for number in numbers[:-1])
    assert len(numbers) == 1 + len(f" {prompt}".encode() if prompt else b"")
    assert tokenizer.decode(numbers, skip_special_tokens=True).removeprefix(" ") == prompt


def test_the_t5_tokenizer_pads_cuts_and_masks() -> None:
    def tokenize(prompts: list[str]) -> Any:
        return byte_t5_tokenizer(12)(
            prompts, padding="max_length", max_length=12, truncation=True, return_tensors="pt"
        )

    batch = tokenize(["horse", "a horse on mars"])
    assert batch.input_ids.shape == batch.attention_mask.shape == (2, 12)
    assert batch.input_ids[0].tolist()[6:] == [1, 0, 0, 0, 0, 0]
    assert batch.attention_mask.sum(dim=1).tolist() == [7, 12]
    assert batch.input_ids[1, -1] == 1


@pytest.mark.parametrize("name", BY_DEFAULT)
def test_every_prompt_fits_every_tokenizer(name: str) -> None:
    pipeline = small_workload(name).load(torch.float32)
    tokenizers = [part for key, part in pipeline.components.items() if "tokenizer" in key]
    assert tokenizers
    for tokenizer in tokenizers:
        for prompt in (WORKLOADS[name].call.prompt, OTHER_PROMPT):
            assert len(tokenizer(prompt).input_ids) <= tokenizer.model_max_length


# The matrix


def test_exceptions_name_known_techniques_of_the_workload_s_kind_and_a_reason() -> None:
    for workload in WORKLOADS.values():
        for technique, reason in workload.without.items():
            assert workload.kind in CATALOGUE[technique].kinds
            assert reason.strip()


def test_what_a_workload_goes_without_is_unsupported_for_its_reason() -> None:
    device = FakeDevice()
    for scenario in scenarios(["flux", "sd3"]):
        if scenario.technique.libraries:
            continue  # which need not be installed
        reason = scenario.workload.without.get(scenario.technique.id)
        assert scenario.unsupported(device) == reason
    assert "flux-fp16" in {scenario.id for scenario in scenarios(["flux"])}


def test_scenarios_are_those_that_mean_something() -> None:
    ids = {scenario.id for scenario in scenarios(BY_DEFAULT)}
    everywhere = (
        *("fp32", "bf16", "autocast", "layerwise_casting", "model_cpu_offload"),
        *("sequential_cpu_offload", "group_offload_leaf", "group_offload_block"),
    )
    for name in BY_DEFAULT:
        assert {f"{name}-{technique}" for technique in everywhere} <= ids
    assert {"sdxl-fp16", "sd3-fp16", "sdxl-attention_slicing", "sdxl-channels_last"} <= ids
    assert {"flux-torch_compile", "flux-group_offload_stream", "cogvideox-5b-vae_tiling"} <= ids
    assert {"cogvideox-5b-group_offload_mixed", "cogvideox-5b-group_offload_leaf_vae_tiling"} <= ids
    meaningless = """
        flux-attention_slicing cogvideox-5b-attention_slicing sd3-channels_last flux-sdpa
        cogvideox-5b-xformers sdxl-vae_tiling flux-group_offload_mixed
    """
    assert not ids & set(meaningless.split())


class _Operations(TorchDispatchMode):
    """Lists the operations of what runs inside."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def _operations_by_step(scheduler: Any, steps: int) -> list[list[str]]:
    dynamic = scheduler.config.get("use_dynamic_shifting", False)
    scheduler.set_timesteps(steps, **({"mu": 1.0} if dynamic else {}))
    sample = torch.ones(1, 4, 8, 8)
    found = []
    for timestep in scheduler.timesteps:
        with _Operations() as operations:
            sample = scheduler.step(torch.ones_like(sample), timestep, sample, return_dict=False)[0]
        found.append(operations.names)
    return found


def _scheduler(name: str) -> Any:
    small = BY_DEFAULT.get(name, BY_DEFAULT["sd15"])
    scheduler = sd15.UNIPC.scheduler if name == "sd15-4k" else small.scheduler
    return getattr(diffusers, scheduler).from_config(small.configs["scheduler"])


@pytest.mark.parametrize("name", default_workloads("simulated"))
def test_after_the_telling_steps_every_further_one_repeats_the_last_but_one(name: str) -> None:
    telling, steps = WORKLOADS[name].representative_steps, WORKLOADS[name].call.steps
    few = _operations_by_step(_scheduler(name), telling)
    many = _operations_by_step(_scheduler(name), steps)
    repeated = many[telling - 2 : -1]
    assert len(repeated) == steps - telling + 1
    assert all(step == few[-2] for step in repeated)
    # What is outside of the repeated steps is the same in a short call and in a long one.
    assert few[: telling - 2] == many[: telling - 2]
    assert few[-1] == many[-1]


def test_three_steps_do_not_tell_of_unipc() -> None:
    few = _operations_by_step(_scheduler("sd15-4k"), 3)
    assert few[1] != _operations_by_step(_scheduler("sd15-4k"), 20)[10]


def test_changes_replace_fields_of_the_call_and_leave_the_workload() -> None:
    asked: list[Any] = []

    def note(pipeline: Any, call: Call) -> NDArray[np.floating]:
        asked.append((call.steps, torch.is_grad_enabled()))
        return np.zeros((1, 1, 1, 3))

    workload = replace(small_workload("sdxl"), caller=note)
    workload.draw(None, steps=7)
    assert asked == [(7, False)]
    assert workload.call.steps == 3
