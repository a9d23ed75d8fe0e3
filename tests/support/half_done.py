"""Techniques spoilt on purpose, and what their activation checks say of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from fixtures.catalogue.techniques import CATALOGUE
from fixtures.catalogue.techniques.snapshots import linear_work, record_snapshots
from fixtures.catalogue.techniques.technique import ActivationContext
from fixtures.catalogue.workloads import WORKLOADS, Workload
from fixtures.devices import Device, Trace
from fixtures.devices.phases import denoiser

STEPS, WARM_UP_STEPS = 2, 1
Spoil = Callable[[Any], None]


@cache
def brief(name: str, side_px: int = 64) -> Workload:
    """A workload whose call has two steps and a small image."""
    workload = WORKLOADS[name]
    return replace(
        workload, call=replace(workload.call, steps=STEPS, width=side_px, height=side_px)
    )


@dataclass(frozen=True)
class HalfDone:
    """A technique, how it is spoilt, and what the complaint must name.

    `called`: a call alone shows it; all else is seen of the pipeline as it stands.
    """

    technique: str
    how: str
    spoil: Spoil
    says: str
    called: bool = False

    def __str__(self) -> str:
        return f"{self.technique}: {self.how}"

    def is_noticed(self, workload: Workload, device: Device) -> None:
        """Assert what the activation check says, in one sentence."""
        asked = complaint if self.called else complaint_at_rest
        said = asked(self.technique, workload, device, self.spoil)
        assert said is not None
        assert self.says in said
        assert "\n" not in said


def complaint(name: str, workload: Workload, device: Device, spoil: Spoil) -> str | None:
    """What the activation check says of one warm call of the spoilt pipeline.

    Its steps are those that may differ, where the technique skips some of the work.
    """
    technique = CATALOGUE[name]
    steps = workload.call.steps if technique.skips else STEPS
    with device.entered(), technique.applied(workload, device) as pipeline:
        spoil(pipeline)
        workload.draw(pipeline, steps=WARM_UP_STEPS)
        with (
            record_snapshots(pipeline, device) as snapshots,
            linear_work(pipeline) as work,
            device.observe(pipeline, compiled=technique.compiled) as trace,
        ):
            workload.draw(pipeline, steps=steps)
        context = ActivationContext(pipeline, trace, snapshots, workload, device, work)
        return technique.activation_check(context)


def complaint_at_rest(name: str, workload: Workload, device: Device, spoil: Spoil) -> str | None:
    """What it says of the spoilt pipeline as it stands, of whose call nothing was counted."""
    technique, trace = CATALOGUE[name], Trace(calls={"denoiser": STEPS, "vae": 1})
    with device.entered(), technique.applied(workload, device) as pipeline:
        spoil(pipeline)
        context = ActivationContext(pipeline, trace, [], workload, device)
        return technique.activation_check(context)


def nothing(pipeline: Any) -> None:
    """Leave the technique as it is."""


def before_the_last_step(undo: Spoil) -> Spoil:
    """Undo it once all steps but the last have run, the warm-up included."""

    def spoil(pipeline: Any) -> None:
        calls = iter(range(WARM_UP_STEPS + STEPS))

        def count(*_: Any) -> None:
            if next(calls, 0) == WARM_UP_STEPS + STEPS - 1:
                undo(pipeline)

        denoiser(pipeline).register_forward_pre_hook(count)

    return spoil
