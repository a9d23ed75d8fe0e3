"""Regressions put in on purpose: each moves the figures that it must, and no others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from diffusers.models.attention_processor import AttnProcessor2_0

from fixtures.devices import Trace
from fixtures.records.counts import (
    BYTES_MOVED,
    BYTES_TO_DEVICE,
    COPIES_TO_DEVICE,
    FLOPS,
    OPERATIONS,
    SYNCS,
)
from fixtures.records.run import WHOLE
from tests.support.counting import operations_of
from tests.support.simulated_runs import (
    SIDE_PX,
    simulate,
    simulated,
)

STEPS = 3
LATENT_BYTES = 4 * (SIDE_PX // 4) ** 2 * 2
"""Of one image, in fp16: four channels, the VAE of the tests shrinks four times."""


@pytest.fixture
def sound() -> Trace:
    return simulated()


def moved(before: Trace, after: Trace) -> set[str]:
    """The totals that differ, and `peak of COMPONENT`."""
    totals = (OPERATIONS, FLOPS, BYTES_MOVED, SYNCS, COPIES_TO_DEVICE, BYTES_TO_DEVICE)
    names = {name for name in totals if before.counts.total(name) != after.counts.total(name)}
    return names | {
        f"peak of {component}"
        for component, peak in before.component_peak_bytes.items()
        if after.component_peak_bytes[component] != peak
    }


def wrapped(owner: Any, name: str, around: Callable[..., Any]) -> None:
    """Replace `owner.name` by a function that gets the old one first."""
    old = getattr(owner, name)
    setattr(owner, name, lambda *args, **kwargs: around(old, *args, **kwargs))


def new_origins(before: Trace, after: Trace) -> Counter[str]:
    return Counter(operations_of(after.counts)) - Counter(operations_of(before.counts))


def test_an_upcast_left_in_attention(sound: Trace) -> None:
    class Upcast(AttnProcessor2_0):  # type: ignore[misc]
        def __call__(self, attn: Any, hidden_states: Any, *args: Any, **kwargs: Any) -> Any:
            return super().__call__(attn, hidden_states.float().half(), *args, **kwargs)

    spoilt = simulate(spoil=lambda pipeline: pipeline.unet.set_attn_processor(Upcast()))
    assert {OPERATIONS, BYTES_MOVED} <= moved(sound, spoilt)
    assert FLOPS not in moved(sound, spoilt)
    layers = 8  # four transformer blocks, each with self- and cross-attention
    assert new_origins(sound, spoilt) == {"aten::_to_copy in Attention": 2 * layers * STEPS}


def test_an_extra_copy_of_the_latents(sound: Trace) -> None:
    def clone(pipeline: Any) -> None:
        def copied(old: Any, noise: Any, step: Any, sample: Any, *args: Any, **kwargs: Any) -> Any:
            return old(noise, step, sample.clone(), *args, **kwargs)

        wrapped(pipeline.scheduler, "step", copied)

    spoilt = simulate(spoil=clone)
    assert (
        {OPERATIONS, BYTES_MOVED}
        <= moved(sound, spoilt)
        <= {OPERATIONS, BYTES_MOVED, "peak of denoiser"}
    )
    assert spoilt.counts.total(OPERATIONS) == sound.counts.total(OPERATIONS) + STEPS
    assert (
        spoilt.counts.total(BYTES_MOVED)
        == sound.counts.total(BYTES_MOVED) + STEPS * 2 * LATENT_BYTES
    )
    assert new_origins(sound, spoilt) == {"aten::clone in the pipeline": STEPS}
    assert spoilt.component_peak_bytes[WHOLE] == sound.component_peak_bytes[WHOLE]
