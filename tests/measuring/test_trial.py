"""One trial stands for all cards on which the same kernels run, and for no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.devices.simulated.profiles import Profile, find_card
from fixtures.measuring.trial import try_configuration
from fixtures.records.fit import MAX_CONTEXT_BYTES, Configuration
from fixtures.techniques import CATALOGUE
from tests.support.simulated_runs import small

BRIEF = small(width=64, height=64)


def tried(technique: str, *cards: Profile) -> tuple[Configuration, ...]:
    device = SimulatedDevice(cards[0], trial=True)
    return try_configuration(BRIEF, [CATALOGUE[technique]], device, cards)


@pytest.mark.parametrize("technique", ["fp16", "model_cpu_offload"])
def test_cards_of_the_same_kernels_are_asked_for_the_same(technique: str) -> None:
    small_card, large_card, other = map(find_card, ("rtx-3060", "a100-80gb", "h100"))
    assert small_card.kernels == large_card.kernels != other.kernels
    slow, fast = tried(technique, small_card, large_card)
    [alone], [hopper] = tried(technique, large_card), tried(technique, other)
    assert fast == alone == replace(slow, bound_ms=fast.bound_ms)
    # cuBLAS keeps 32 MiB there.
    assert hopper.peak_bytes > fast.peak_bytes


def test_a_card_with_a_byte_too_few_is_where_the_memory_runs_out() -> None:
    card = find_card("rtx-4090")
    [whole] = tried("fp16", card)
    exact = replace(card, memory_bytes=whole.needed_bytes + MAX_CONTEXT_BYTES)
    too_small = replace(exact, memory_bytes=exact.memory_bytes - 1)
    fits, lacks = tried("fp16", exact, too_small)
    assert fits.refusal is None
    assert "out of memory" in (lacks.refusal or "")
