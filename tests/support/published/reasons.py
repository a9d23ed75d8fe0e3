"""Why figures were missed: the same runs with one assumption changed.

`python -m tests.support.published.reasons` prints the figures behind a reason in docs/simulated.md.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch.nn.functional as F  # noqa: N812

from tests.support.published.figures import fresh_peaks_of
from tests.support.published.table import FIGURES


def _cached_in_module(self: Any, inputs: Any, conv_cache: Any = None) -> tuple[Any, None]:
    """As CogVideoX's convolutions kept frames until diffusers 0.30: each its own, until it runs."""
    inputs = self.fake_context_parallel_forward(inputs, self.__dict__.pop("kept", None))
    self.__dict__["kept"] = inputs[:, :, -self.time_kernel_size + 1 :].clone()
    inputs = F.pad(inputs, (self.width_pad,) * 2 + (self.height_pad,) * 2)
    self.conv.padding = (0, 0, 0)
    return self.conv(inputs), None


@contextlib.contextmanager
def cached_in_modules() -> Iterator[None]:
    """The CogVideoX VAE of diffusers 0.30."""
    from diffusers.models.autoencoders.autoencoder_kl_cogvideox import CogVideoXCausalConv3d

    with mock.patch.object(CogVideoXCausalConv3d, "forward", _cached_in_module):
        yield


def print_reasons() -> None:
    """Print CogVideoX's figures again, with frames kept as in diffusers 0.30."""
    with cached_in_modules():
        for figure in FIGURES:
            if "CogVideoX-" in figure.name:
                gib = fresh_peaks_of(figure.profile, figure.run).modelled[figure.counter]
                deviation = gib / figure.published - 1
                print(
                    f"| {figure.name} | {figure.published:g} | {gib:.3f} | {deviation:+.1%} |",
                    flush=True,
                )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print_reasons()
