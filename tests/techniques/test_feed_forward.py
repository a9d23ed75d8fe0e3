"""Feed-forward layers in pieces: in effect, by half, without effect, undone, and what they save."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fixtures.devices.cpu import CpuDevice
from fixtures.measuring.observation import observe
from fixtures.scenarios import Scenario
from fixtures.techniques import CATALOGUE
from fixtures.techniques.feed_forward import chunkable_blocks
from tests.support.half_done import HalfDone, brief

NAME = "feed_forward_chunking"
CPU = CpuDevice()


def whole_in_every_other(pipeline: Any) -> None:
    for block in list(chunkable_blocks(pipeline.unet).values())[::2]:
        block.set_chunk_feed_forward(None, 0)


def pieces_of(images: int, dim: int) -> Any:
    def spoil(pipeline: Any) -> None:
        for block in chunkable_blocks(pipeline.unet).values():
            block.set_chunk_feed_forward(images, dim)

    return spoil


def ignored(pipeline: Any) -> None:
    """Blocks that know their pieces and compute all at once."""
    for block in chunkable_blocks(pipeline.unet).values():
        block.__dict__["forward"] = _Whole(block)


class _Whole:
    def __init__(self, block: Any) -> None:
        self._block, self._forward = block, block.forward

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        size, self._block._chunk_size = self._block._chunk_size, None
        try:
            return self._forward(*args, **kwargs)
        finally:
            self._block._chunk_size = size


HALF_DONE = [
    HalfDone(NAME, "half of the blocks", whole_in_every_other, "4 of 7 blocks do not"),
    HalfDone(NAME, "pieces of all images", pieces_of(2, 0), "7 of 7 blocks do not"),
    HalfDone(NAME, "of tokens", pieces_of(1, 1), "7 of 7 blocks do not"),
    HalfDone(NAME, "without effect", ignored, "computed 14 pieces, 28 or more", called=True),
]


@pytest.mark.parametrize("case", HALF_DONE, ids=str)
def test_a_half_done_technique_is_inactive(case: HalfDone) -> None:
    case.is_noticed(brief("storybook"), CPU)


def test_it_takes_less_and_draws_the_same() -> None:
    scenario = Scenario(brief("storybook", 128), CATALOGUE[NAME])
    plain, chunked = observe(scenario.reference, CPU), observe(scenario, CPU)
    assert chunked.component_peak_bytes["denoiser"] < plain.component_peak_bytes["denoiser"]
    np.testing.assert_allclose(chunked.images, plain.images, atol=1e-4)


def test_leaving_it_computes_all_at_once_again() -> None:
    with CATALOGUE[NAME].applied(brief("storybook"), CPU) as pipeline:
        blocks = list(chunkable_blocks(pipeline.unet).values())
        assert {block._chunk_size for block in blocks} == {1}
    assert {block._chunk_size for block in blocks} == {None}
