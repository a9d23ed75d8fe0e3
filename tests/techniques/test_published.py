"""Published figures: each has a scenario, promises can fail, deviations are shown."""

from __future__ import annotations

import pytest

from fixtures.records.units import GIB
from fixtures.scenarios import scenarios
from fixtures.techniques.published import GB, PUBLISHED, Published, published_of
from fixtures.workloads import WORKLOADS

PROMISE = Published("sd15-4k-vae_tiling", "whole", "at most", 8 * GB, "a page")
RUN = Published("flux-bf16", "reserved", "about", 36 * GIB, "a post")


@pytest.mark.parametrize("figure", PUBLISHED, ids=lambda figure: figure.scenario)
def test_every_figure_belongs_to_a_scenario(figure: Published) -> None:
    assert figure.scenario in {scenario.id for scenario in scenarios(list(WORKLOADS))}
    assert figure in published_of(figure.scenario)


def test_a_promise_fails_above_its_figure() -> None:
    assert PROMISE.holds(8 * GB)
    assert not PROMISE.holds(8 * GB + 1)


def test_a_single_run_promises_nothing() -> None:
    assert RUN.holds(100 * GIB)


def test_each_figure_is_shown_with_its_deviation() -> None:
    sentence = RUN.compared({"simulated": 33.75 * GIB, "nvidia-h200": 36 * GIB})
    assert sentence == (
        "flux-bf16: documented about 36.00 GiB (reserved, a post), "
        "simulated 33.75 GiB (-6.2 %), nvidia-h200 36.00 GiB (+0.0 %)"
    )
