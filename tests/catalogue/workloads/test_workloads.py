"""The full-size workloads: published calls, images from small copies, what they run."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import diffusers
import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from fixtures.catalogue.matrix import scenarios
from fixtures.catalogue.workloads import BY_NAME, WORKLOADS, default_workloads
from fixtures.catalogue.workloads.twins import FRAMES, SMALL
from fixtures.devices.phases import denoiser
from fixtures.devices.torch_settings import one_thread
from fixtures.metrics.likeness import check_images
from fixtures.records.outcome import Reason
from tests.support.fake_device import FakeDevice
from tests.support.small_workloads import BY_DEFAULT, small_workload

pytestmark = [
    # Schedulers of diffusers turn tensors into arrays in a way that numpy 2 deprecates.
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    # Chroma's own model calls what diffusers deprecates.
    pytest.mark.filterwarnings("ignore:`FluxPosEmbed` is deprecated:FutureWarning"),
]


@pytest.fixture(autouse=True)
def on_one_thread() -> Iterator[None]:
    with one_thread():
        yield


def test_each_device_has_workloads_of_its_own_and_every_other_one_runs_by_name() -> None:
    stable_diffusion = ("sd15", "sd15-batch32", "sd15-4k")
    others = ("sdxl", "sd3", "flux", "cogvideox-5b")
    assert default_workloads("simulated") == (*stable_diffusion, *others)
    assert default_workloads("cuda") == stable_diffusion
    assert {*SMALL} - {*BY_DEFAULT} == {workload.name for workload in BY_NAME}


# Wan 14B has the layers of 1.3B, only more of them.
@pytest.mark.parametrize("name", [name for name in SMALL if name != "wan-14b"])
def test_a_small_copy_draws_images_that_depend_on_seed_and_prompt(name: str) -> None:
    workload = small_workload(name)
    pipeline = workload.load(torch.float32)
    images = workload.draw(pipeline, steps=2)
    call = workload.call
    assert images.shape == (call.frames, call.height, call.width, 3)
    assert call.frames == (FRAMES if workload.kind == "video" else 1)
    assert np.isfinite(images).all()
    assert np.array_equal(images, workload.draw(workload.load(torch.float32), steps=2))
    assert not np.array_equal(images, workload.draw(pipeline, seed=1, steps=2))
    if name in BY_DEFAULT:
        check_images(images)
        other = workload.draw(pipeline, prompt="a bowl of fruit", steps=2)
        assert not np.array_equal(images, other)
        first, second = np.split(workload.draw(pipeline, batch=2, steps=2), 2)
        assert len(first) == call.frames
        assert not np.array_equal(first, second)


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


def test_a_workload_of_bf16_runs_in_bf16_where_others_run_in_fp16() -> None:
    accelerator: Any = SimpleNamespace(base_dtype=torch.float16, half_dtype=torch.float16)
    cpu: Any = SimpleNamespace(base_dtype=torch.float32, half_dtype=torch.bfloat16)
    for name, half in (("sd15", torch.float16), ("flux", torch.bfloat16)):
        workload = WORKLOADS[name]
        assert workload.base_dtype(accelerator) is half
        assert workload.autocast_dtype(accelerator) is half
        assert workload.base_dtype(cpu) is torch.float32
        assert workload.autocast_dtype(cpu) is torch.bfloat16


# The matrix


def test_what_a_workload_goes_without_is_unsupported_for_its_reason() -> None:
    device = FakeDevice()
    for scenario in scenarios(["flux", "sd3"]):
        if scenario.technique.libraries:
            continue  # which need not be installed
        reason = scenario.workload.without.get(scenario.technique.id)
        assert scenario.unsupported(device) == (Reason(reason) if reason else None)


def test_scenarios_are_those_that_mean_something() -> None:
    ids = {scenario.id for scenario in scenarios(WORKLOADS)}
    assert {f"{name}-fp32" for name in WORKLOADS} <= ids
    meaningful = """
        sdxl-attention_slicing storybook-batch8-vae_slicing storybook-256-vae_tiling
        flux-torch_compile flux-group_offload_stream cogvideox-5b-group_offload_mixed
        cogvideox-5b-vae_tiling cogvideox-5b-group_offload_leaf_vae_tiling storybook-dit-fp16
    """
    assert {*meaningful.split()} <= ids
    meaningless = """
        flux-attention_slicing cogvideox-5b-attention_slicing sd3-channels_last flux-sdpa
        cogvideox-5b-xformers sdxl-vae_tiling flux-group_offload_mixed storybook-vae_tiling
    """
    assert not ids & {*meaningless.split()}


# Schedulers


def _scheduler(name: str) -> Any:
    source: Any = WORKLOADS[name].source
    _, scheduler = source.index["scheduler"]
    return getattr(diffusers, scheduler).from_config(source.configs["scheduler"])


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
    by_step = []
    for timestep in scheduler.timesteps:
        with _Operations() as operations:
            sample = scheduler.step(torch.ones_like(sample), timestep, sample, return_dict=False)[0]
        by_step.append(operations.names)
    return by_step


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
    if name == "sd15-4k":  # three steps do not tell of UniPC
        assert telling > 3
        assert _operations_by_step(_scheduler(name), 3)[1] != repeated[0]
