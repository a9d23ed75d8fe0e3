"""Twins: equal to themselves, alike under other kernels, and apart where something is wrong."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache, wraps
from types import SimpleNamespace
from typing import Any
from unittest import mock

import diffusers
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from fixtures.catalogue.workloads import BY_NAME, FULL_SIZE, WORKLOADS
from fixtures.catalogue.workloads.twins import (
    CALLS,
    EMBEDDED,
    LEFT_OUT,
    LONG,
    SHORT,
    Twin,
    draw_weights,
    parameter_names,
    twin_of,
    twins,
)
from fixtures.devices.phases import denoisers
from fixtures.devices.torch_settings import one_thread
from fixtures.metrics.values import ROUNDING, differences
from fixtures.records.outcome import Outcome, ScenarioError

pytestmark = [
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:`FluxPosEmbed` is deprecated:FutureWarning"),
]

NAMES = [twin.name.removesuffix("-twin") for twin in twins()]
QUICK = ("flux", "z-image", "pixart-sigma")
WITHOUT_MASK = ("sd15", "sd15-4k", "sdxl", "sd3", "flux", "cogvideox-5b")
"""Their pipelines let the text encoders and the denoiser read what pads a prompt."""
BY_LENGTH = ("z-image",)
"""It cuts off what pads a prompt, and makes its mask itself."""
Change = Callable[[list[Any], dict[str, Any]], None]
"""Of arguments, by place and by name."""


@contextlib.contextmanager
def called_with(
    modules: Any, change: Callable[[list[Any], dict[str, Any]], None]
) -> Iterator[None]:
    """Change what modules are called with; at least one of them has to be called."""
    calls = []

    def hook(_: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        mine = list(args)
        change(mine, options)
        calls.append(1)
        return tuple(mine), options

    hooks = [module.register_forward_pre_hook(hook, with_kwargs=True) for module in modules]
    try:
        yield
    finally:
        for each in hooks:
            each.remove()
    assert calls


def text_encoders(pipeline: Any) -> list[Any]:
    parts = (getattr(pipeline, f"text_encoder{n}", None) for n in ("", "_2", "_3"))
    return [part for part in parts if part is not None]


def tokens_reversed(pipeline: Any) -> AbstractContextManager[Any]:
    def change(args: list[Any], options: dict[str, Any]) -> None:
        if args:
            args[0] = args[0].flip(1)
        else:
            options["input_ids"] = options["input_ids"].flip(1)

    return called_with(text_encoders(pipeline), change)


@contextlib.contextmanager
def masks_dropped(pipeline: Any) -> Iterator[None]:
    def change(args: list[Any], options: dict[str, Any]) -> None:
        for name, value in options.items():
            if "mask" in name and torch.is_tensor(value):
                options[name] = torch.ones_like(value)
        if len(args) == 2:  # a text encoder's
            args[1] = torch.ones_like(args[1])

    with called_with([*text_encoders(pipeline), *denoisers(pipeline)], change):
        yield


@contextlib.contextmanager
def noise_levels_shifted(pipeline: Any) -> Iterator[None]:
    scheduler = type(pipeline.scheduler)
    set_timesteps = scheduler.set_timesteps

    @wraps(set_timesteps)
    def shifted(self: Any, *args: Any, **options: Any) -> None:
        set_timesteps(self, *args, **options)
        name = "sigmas" if hasattr(self, "sigmas") else "alphas_cumprod"
        setattr(self, name, 0.99 * getattr(self, name))

    alphas = getattr(pipeline.scheduler, "alphas_cumprod", None)
    with mock.patch.object(scheduler, "set_timesteps", shifted):
        yield
    if alphas is not None:
        pipeline.scheduler.alphas_cumprod = alphas


def latents_scaled(pipeline: Any) -> AbstractContextManager[Any]:
    decode = pipeline.vae.decode
    return mock.patch.object(pipeline.vae, "decode", lambda z, *a, **o: decode(1.01 * z, *a, **o))


def axes_swapped(pipeline: Any) -> AbstractContextManager[Any]:
    """Rows and columns of the position embedding, rotary or not, in each other's place."""
    transformer = pipeline.transformer
    name = type(pipeline).__name__.removesuffix("Pipeline")
    if name in ("StableDiffusion3", "PixArtSigma"):
        part = transformer.pos_embed
        return mock.patch.object(part, "forward", transposed(part, part.forward))
    if name == "CogVideoX":
        method = "_prepare_rotary_positional_embeddings"
        prepare = getattr(pipeline, method)
        return mock.patch.object(pipeline, method, lambda h, w, *rest: prepare(w, h, *rest))
    if name == "ZImage":
        part, call = type(transformer.rope_embedder), type(transformer.rope_embedder).__call__
        return mock.patch.object(part, "__call__", lambda self, ids: call(self, swapped(ids)))
    changes: dict[str, Callable[[Any], Any]] = {
        "LTX2": lambda coordinates: coordinates[:, [0, 2, 1]],
        "QwenImage": lambda sizes: [[(f, w, h) for f, h, w in each] for each in sizes],
        **dict.fromkeys(("Wan", "HunyuanVideo15"), lambda latents: latents.transpose(-1, -2)),
        **dict.fromkeys(("Flux", "Flux2", "Chroma"), swapped),
    }

    def change(args: list[Any], options: dict[str, Any]) -> None:
        args[0] = changes[name](args[0])

    part = getattr(transformer, "rope", None) or transformer.pos_embed
    return called_with([part], change)


def swapped(ids: torch.Tensor) -> torch.Tensor:
    """Coordinates by token, the second and the third in each other's place."""
    return ids[..., [0, 2, 1, 3][: ids.shape[-1]]]


def transposed(part: Any, embed: Callable[[Any], Any]) -> Callable[[torch.Tensor], torch.Tensor]:
    """What embeds patches, but for positions of an image that lies on its side."""

    def embedded(latent: torch.Tensor) -> torch.Tensor:
        rows, columns = (size // part.patch_size for size in latent.shape[-2:])
        upright, lying = (embed(torch.zeros_like(each)) for each in (latent, latent.mT))
        turned = lying.unflatten(1, (columns, rows)).transpose(1, 2).flatten(1, 2)
        result: torch.Tensor = embed(latent) - upright + turned
        return result

    return embedded


def guidance_off(twin: Twin, pipeline: Any) -> Twin:
    if hasattr(pipeline, "guider"):
        pipeline.guider.guidance_scale = 1.0
    return replace(twin, call=replace(twin.call, guidance_scale=1.0))


@cache
def made(name: str) -> tuple[Twin, Any]:
    """A twin that draws its last prompts alone, two where it can, and a pipeline."""
    twin = twin_of(name)
    called = list(twin.calls)[-2]
    return replace(twin, calls={called: twin.calls[called]}), twin.load(torch.float32)


def test_every_class_and_configuration_has_a_twin_that_nobody_runs_unasked() -> None:
    assert {*NAMES, *LEFT_OUT} == {workload.name for workload in (*FULL_SIZE, *BY_NAME)}
    assert not [name for name in WORKLOADS if name.endswith("-twin")]


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in NAMES],
)
def test_what_is_wrong_is_far_beyond_rounding_and_what_is_not_is_not(name: str) -> None:
    twin, pipeline = made(name)

    def share(changed: AbstractContextManager[Any], by: Twin = twin, of: Any = pipeline) -> float:
        with changed:
            return max(each.share for each in differences(sound, by.computed(of)))

    nothing = contextlib.nullcontext()
    with one_thread():
        sound = twin.computed(pipeline)
        assert share(nothing, of=twin_of(name).load(torch.float32)) == 0
        assert 0 < share(sdpa_kernel(SDPBackend.MATH)) < ROUNDING / 3
        faults = {
            "tokens": share(tokens_reversed(pipeline)),
            "noise levels": share(noise_levels_shifted(pipeline)),
            "scaling": share(latents_scaled(pipeline)),
        }
        if name not in (*WITHOUT_MASK, *BY_LENGTH):
            faults["masks"] = share(masks_dropped(pipeline))
        if hasattr(pipeline, "transformer"):
            faults["axes"] = share(axes_swapped(pipeline))
        assert share(nothing) == 0  # every fault has ended
        faults["guidance"] = share(nothing, by=guidance_off(twin, pipeline))
        fewer = replace(twin, call=replace(twin.call, steps=twin.call.steps - 1))
        assert share(nothing, by=fewer) == float("inf")
    assert min(faults.values()) > 3 * ROUNDING, faults


@pytest.mark.parametrize("name", QUICK)
def test_pictures_of_each_prompt_and_generators_are_those_that_were_asked_for(name: str) -> None:
    twin, pipeline = made(name)

    def computed(called: str, **changes: Any) -> dict[str, Any]:
        with one_thread():
            changes = {**CALLS[called], **changes}
            return replace(twin, calls={"the call": changes}).computed(pipeline)

    two, own = "two of each prompt", "both prompts, each with its generator"
    of_each = computed(two)
    for four, alike in (((SHORT, LONG, LONG), True), ((LONG, SHORT, LONG), False)):
        single = computed(two, per_prompt=1, further_prompts=four)
        assert (max(each.share for each in differences(of_each, single)) < ROUNDING) == alike
    same = computed(own, seeds=(1, 1))
    assert max(each.share for each in differences(computed(own), same)) > 3 * ROUNDING


@pytest.mark.parametrize("name", QUICK)
def test_embeddings_draw_what_their_prompts_draw_where_a_pipeline_takes_them(name: str) -> None:
    twin, pipeline = made(name)
    call = type(pipeline).__call__

    @wraps(call)
    def refusing(self: Any, **options: Any) -> Any:
        if "prompt_embeds" in options:
            raise ValueError("no embeddings")
        return call(self, **options)

    def computed(by: Any) -> list[dict[str, Any]]:
        """What the call of prompts computes, and what that of embeddings does."""
        with one_thread(), mock.patch.object(type(pipeline), "__call__", by):
            values = replace(twin, calls={**twin.calls, EMBEDDED: {}}).computed(pipeline)
        parts = {key.rpartition(", ")[::2]: array for key, array in values.items()}
        return [
            {part: array for (of, part), array in parts.items() if (of == EMBEDDED) == embedded}
            for embedded in (False, True)
        ]

    prompts, embeddings = computed(call)
    assert [each.share for each in differences(prompts, embeddings)] == [0.0] * len(prompts)
    assert computed(refusing)[1] == {"raised": "ValueError: no embeddings"}
    assert computed(lambda self, **options: call(self, **options))[1] == {}


def test_a_call_of_several_that_fails_leaves_what_it_raised_and_one_of_one_raises() -> None:
    twin, pipeline = twin_of("cogvideox-5b"), twin_of("cogvideox-5b").load(torch.float32)
    several = replace(twin, calls={"two of each prompt": CALLS["two of each prompt"]})
    [(name, raised)] = several.computed(pipeline).items()
    assert name == "two of each prompt, raised"
    assert str(raised).startswith("RuntimeError: Sizes of tensors must match")
    pipeline.transformer = None
    with pytest.raises(AttributeError):
        twin.computed(pipeline)


def test_weights_are_drawn_by_name_and_none_is_negligible() -> None:
    pipeline = twin_of("flux").load(torch.float32)
    scales = pipeline.vae.decoder.conv_norm_out.weight
    assert scales.std() > 0.1
    assert pipeline.vae.decoder.conv_norm_out.bias.abs().max() > 0.1
    other = torch.nn.Sequential()
    other.first, other.second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
    draw_weights(SimpleNamespace(components={"part": other}))
    two = other.second.weight.clone()
    alone = torch.nn.Sequential()
    alone.second = torch.nn.Linear(4, 4)
    draw_weights(SimpleNamespace(components={"part": alone}))
    assert torch.equal(alone.second.weight, two)
    assert not torch.equal(other.first.weight, two)


@pytest.mark.parametrize(
    "lacking", [{"_class_name": "Flux9Pipeline"}, {"vae": ["diffusers", "Flux9"]}]
)
def test_a_release_without_a_class_is_unsupported_in_words(lacking: dict[str, Any]) -> None:
    source: Any = twin_of("flux").source
    with pytest.raises(ScenarioError) as caught:
        source.changed(model_index=lacking)("", torch.float32)
    assert caught.value.outcome is Outcome.UNSUPPORTED
    assert caught.value.reason.startswith(f"diffusers {diffusers.__version__} has no Flux9")


def test_a_parameter_is_named_with_its_component_and_shape() -> None:
    names = parameter_names(twin_of("sd15").load(torch.float32))
    assert "unet/conv_in.weight (32, 4, 3, 3)" in names
    assert "text_encoder/encoder.layers.0.mlp.fc1.bias (64,)" in names  # of transformers 4, too
