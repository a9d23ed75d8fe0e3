"""One trial stands for all cards on which the same kernels run, and for no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.devices.simulated.profiles import find_card
from fixtures.measuring.trial import Trial, try_configuration
from fixtures.records.fit import MAX_CONTEXT_BYTES
from fixtures.records.units import GIB
from fixtures.techniques import CATALOGUE
from tests.support import fits
from tests.support.simulated_runs import small

BRIEF = small(width=64, height=64)


def tried(card: str, technique: str) -> Trial:
    return try_configuration(BRIEF, [CATALOGUE[technique]], SimulatedDevice(card, trial=True))


@pytest.mark.parametrize("technique", ["fp16", "model_cpu_offload"])
def test_cards_of_the_same_kernels_are_asked_for_the_same(technique: str) -> None:
    small_card, large_card, other = ("rtx-3060", "a100-80gb", "h100")
    assert find_card(small_card).kernels == find_card(large_card).kernels
    assert find_card(small_card).kernels != find_card(other).kernels
    one, same, hopper = (tried(card, technique) for card in (small_card, large_card, other))
    assert (one.requests.log, one.requests.places) == (same.requests.log, same.requests.places)
    assert vars(replace(one, requests=same.requests)) == vars(same)
    # cuBLAS keeps 32 MiB there.
    assert hopper.peak_bytes > one.peak_bytes


def test_a_card_decides_what_fits_it_and_how_long_it_takes() -> None:
    large = fits.trial(needed_bytes=20 * GIB, flops=10**15)
    slow, fast = find_card("l4"), find_card("rtx-4090")
    assert large.on(slow).bound_ms == pytest.approx(10**15 / slow.flop_per_s["bf16"] * 1000)
    assert large.on(slow).bound_ms > large.on(fast).bound_ms
    exact = replace(fast, memory_bytes=20 * GIB + MAX_CONTEXT_BYTES)
    assert large.on(exact).refusal is None
    assert "in the VAE (Conv2d)" in (
        large.on(replace(exact, memory_bytes=exact.memory_bytes - 1)).refusal or ""
    )
    assert large.on(find_card("12GiB")).reserved_bytes == 20 * GIB
