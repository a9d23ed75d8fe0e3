"""Why figures were missed: the same runs with one assumption changed.

`python -m tests.support.published.reasons` prints the figures behind the reasons in
docs/simulated.md. None of this is part of the rule.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F  # noqa: N812

from fixtures.devices.simulated import simulation
from fixtures.devices.simulated.private import calc_conv_nd_return_shape
from fixtures.devices.simulated.workspaces import workspace_bytes
from tests.support.published.figures import Figure, fresh_peaks_of
from tests.support.published.table import FIGURES

Rule = Callable[[Any, Sequence[Any]], int]
_VOLUMES = 5
"""Dimensions of what a 3-D convolution takes."""


def with_volumes(operation: Any, args: Sequence[Any]) -> int:
    """The rule, and 3-D convolutions as if they were of two dimensions (in half precision)."""
    if operation is not torch.ops.aten.convolution.default or args[0].dim() != _VOLUMES:
        return workspace_bytes(operation, args)
    values, weight, _, stride, padding, dilation, transposed, _, groups = args
    shape = calc_conv_nd_return_shape(
        values, weight, stride, padding, dilation, transposed, groups, None
    )
    elements: int = values.numel() + weight.numel() + torch.Size(shape).numel()
    return elements * int(values.element_size())


def without_channels_last(operation: Any, args: Sequence[Any]) -> int:
    """The rule, and nothing where the input is channels-last already."""
    needed = workspace_bytes(operation, args)
    return 0 if needed and args[0].stride()[1] == 1 < args[0].shape[1] else needed


def _cached_in_module(self: Any, inputs: Any, conv_cache: Any = None) -> tuple[Any, None]:
    """As CogVideoX's convolutions kept frames until diffusers 0.30: each its own, until it runs."""
    inputs = self.fake_context_parallel_forward(inputs, self.__dict__.pop("kept", None))
    self.__dict__["kept"] = inputs[:, :, -self.time_kernel_size + 1 :].clone()
    inputs = F.pad(inputs, (self.width_pad,) * 2 + (self.height_pad,) * 2)
    self.conv.padding = (0, 0, 0)
    return self.conv(inputs), None


@contextlib.contextmanager
def ruled(rule: Rule) -> Iterator[None]:
    """Another rule for the workspaces."""
    with mock.patch.object(simulation, "workspace_bytes", rule):
        yield


@contextlib.contextmanager
def cached_in_modules() -> Iterator[None]:
    """The CogVideoX VAE of diffusers 0.30."""
    from diffusers.models.autoencoders.autoencoder_kl_cogvideox import CogVideoXCausalConv3d

    with mock.patch.object(CogVideoXCausalConv3d, "forward", _cached_in_module):
        yield


def _print(figures: list[Figure], why: str) -> None:
    for figure in figures:
        gib = fresh_peaks_of(figure.profile, figure.run).modelled[figure.counter]
        deviation = gib / figure.published - 1
        print(
            f"| {figure.name} | {why} | {figure.published:g} | {gib:.3f} | {deviation:+.1%} |",
            flush=True,
        )


def _named(*parts: str) -> list[Figure]:
    return [one for one in FIGURES if any(part in one.name for part in parts)]


def print_reasons() -> None:
    """Print the missed figures again, each with the assumption that is changed."""
    with ruled(with_volumes):
        _print(_named("VAE of", "Hunyuan", "LTX", "1.5"), "3-D workspaces")
    with ruled(without_channels_last):
        _print(_named("Flux bf16 1024x1024, batch"), "none where channels-last")
    with cached_in_modules():
        _print(_named("CogVideoX-"), "frames kept as in diffusers 0.30")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print_reasons()
