"""Known losses: what is lost in which step, and how what sees them is shown."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from fixtures.devices.host_calls import HostCallCounter
from fixtures.records.host_work import LIBRARY_PACKAGES
from fixtures.records.outcome import Outcome
from fixtures.studies.power import losses
from fixtures.studies.power.losses import KINDS, LATE_STEP, LOOP, counted_function, lose
from fixtures.studies.power.seen import Seen, table

STEPS = 20


class Pipeline:
    """Calls its denoiser once in each step."""

    def __init__(self) -> None:
        self.scheduler = SimpleNamespace(timesteps=range(STEPS), set_timesteps=lambda: None)
        self.unet = SimpleNamespace(forward=lambda: None)

    def __call__(self) -> None:
        self.scheduler.set_timesteps()
        for _ in range(STEPS):
            self.unet.forward()


@pytest.mark.parametrize("kind", KINDS)
def test_a_share_of_every_step_is_lost_or_all_of_it_in_one(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent: list[float] = []
    monkeypatch.setattr(losses, "made", lambda: dict.fromkeys(KINDS, spent.append))
    pipeline = Pipeline()
    lose(pipeline, kind, 6.0)
    pipeline()
    assert spent == ([STEPS * 6.0] if kind == "late" else [6.0] * STEPS)
    pipeline()
    assert len(spent) == (2 if kind == "late" else 2 * STEPS)
    assert LATE_STEP < STEPS


def test_the_loop_counts_as_diffusers_own() -> None:
    import diffusers

    assert diffusers.__file__
    loop = counted_function(LOOP, "loop")
    with HostCallCounter(LIBRARY_PACKAGES, None) as counter:
        loop(1000)
    assert counter.work().call.bytecodes["diffusers/models/loss.py:loop"] >= 2000


def test_what_is_seen_stands_out_in_the_table() -> None:
    outcomes = {"operations": Outcome.PASS, "host's work": Outcome.REGRESSION}
    rows: Sequence[Seen] = [Seen("loop", 2, outcomes, "storybook: the host's work changed")]
    lines = list(table(iter(rows)))
    assert lines[2] == (
        "| loop | 2 % | pass | **seen** | not counted | not counted | not counted |"
    )
