"""Whether published times can calibrate a forecast: the runs, ours, and what is held out.

`python -m tests.support.published.times` prints the tables behind docs/fit.md, up to half an hour
on one core. `times.json` has what others published of calls that the suite can simulate, eager, on
cards that have a profile. The rules were fixed before anything of ours was computed: sources are
sorted by the SHA-256 of their address, and every other one is held out, the second first, with all
its runs. A forecast is good enough if both the median and the worst of its held-out errors are
within 15 %.
"""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal
from unittest import mock

import numpy as np

from fixtures.devices.simulated import simulation
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.devices.simulated.meter import Meter
from fixtures.devices.simulated.profiles import Profile
from fixtures.devices.simulated.roofline import Roofline
from fixtures.measuring.trial import try_configuration
from fixtures.records.counts import BYTES_TO_DEVICE, BYTES_TO_HOST, Counts
from fixtures.records.fit import SAME_TIME
from fixtures.techniques import CATALOGUE
from fixtures.workloads import WORKLOADS
from tests.support.published.forecasts import (
    FITS,
    KINDS,
    Timed,
    errors,
    order,
    pairs_by,
)

FILE: Final = Path(__file__).with_suffix(".json")
GOOD_ENOUGH: Final = 0.15
PLAIN: Final = frozenset({("fp16",), ("bf16",), ("channels_last",)})
"""Everything on the card, in half precision, by fused attention."""


@dataclass(frozen=True)
class Run:
    """A call of a workload with techniques on a card, and what its source says that it took.

    `call` are changes of the workload's call. `published` is of a whole call with so many `calls`
    of the denoiser, in s, or without them of one of those, in it/s or s/it.
    """

    source: str
    workload: str
    techniques: tuple[str, ...]
    card: str
    published: float
    unit: Literal["s", "it/s", "s/it"]
    calls: int | None = None
    call: Mapping[str, int] = field(default_factory=dict, hash=False)

    @property
    def published_s(self) -> float:
        """Of the whole call, or of one call of the denoiser."""
        return 1 / self.published if self.unit == "it/s" else self.published

    @property
    def offloads(self) -> bool:
        """Whether weights wait on the host."""
        return any("offload" in name for name in self.techniques)

    @property
    def what(self) -> tuple[object, ...]:
        """The call, wherever it runs and however."""
        return (self.workload, self.calls, *self.call.items())


Both = Sequence[tuple[Run, Timed]]


def runs() -> list[Run]:
    """All of them, in the order of the file."""
    return [
        Run(**{**run, "source": source["source"], "techniques": tuple(run["techniques"])})
        for source in json.loads(FILE.read_text())
        for run in source["runs"]
    ]


def held_out(sources: set[str]) -> set[str]:
    """Every other source, in an order that says nothing of them."""
    ordered = sorted(sources, key=lambda one: hashlib.sha256(one.encode()).hexdigest())
    return set(ordered[1::2])


class _Work(Meter):
    """Also adds up what each kind of operation needs at the card's peaks."""

    def __init__(self, profile: Profile) -> None:
        super().__init__()
        self._profile = profile
        self._format = "fp32"
        self._now = np.zeros(len(KINDS) + 1)
        self.readings: list[np.ndarray] = []
        """Before each call of the denoiser, and at the end: kinds, launches and copies, in s."""

    def product(self, dtype: str) -> None:
        super().product(dtype)
        self._format = {"float16": "fp16", "bfloat16": "bf16"}.get(dtype, "fp32")

    def work(self, kind: str, flops: int, moved_bytes: int) -> None:
        super().work(kind, flops, moved_bytes)
        operation = Roofline(self._profile)
        operation.add(flops, moved_bytes, self._format)
        of = kind if kind in KINDS else "other"
        self._now[KINDS.index(of)] += operation.compute_bound_s
        self._now[-1] += operation.launch_bound_s

    def counts(self) -> Counts:
        counts = super().counts()
        copied_bytes = sum(counts.totals[way] for way in (BYTES_TO_DEVICE, BYTES_TO_HOST))
        copied_s = copied_bytes / self._profile.host_link_bytes_per_s
        self.readings.append(np.append(self._now, copied_s))
        return counts


def timed(run: Run) -> Timed:
    """The run, simulated: a few calls of the denoiser, which tell of all."""
    workload = WORKLOADS[run.workload]
    changes: dict[str, Any] = {**run.call, **({"steps": run.calls} if run.calls else {})}
    changed = replace(workload, call=replace(workload.call, **changes))
    device = SimulatedDevice(run.card, trial=True)
    meters: list[_Work] = []

    def meter() -> _Work:
        meters.append(_Work(device.profile))
        return meters[-1]

    with mock.patch.object(simulation, "Meter", meter):
        trial = try_configuration(changed, [CATALOGUE[one] for one in run.techniques], device)
    readings = meters[-1].readings
    total_s = readings[-2] - readings[-3]
    bound_s = max(total_s[:-2].sum(), total_s[-2])
    if run.calls:
        total_s = readings[-1] + (run.calls - len(readings) + 1) * total_s
        bound_s = trial.on(device.profile).bound_ms / 1000
    *kinds_s, queued_s, copied_s = map(float, total_s)
    return Timed(run.card, run.published_s, bound_s, tuple(kinds_s), queued_s, copied_s)


def _ratios(both: Both) -> Iterator[str]:
    """How many times its bound each published time is."""
    groups: dict[str, list[float]] = {}
    for run, one in both:
        names = ["offloaded"] if run.offloads else ["on the card", run.card, run.workload]
        for name in names:
            groups.setdefault(name, []).append(one.ratio)
    yield "| published / bound | runs | least | quartile | median | quartile | most |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for name, ratios in sorted(groups.items()):
        cells = [f"{value:.2f}" for value in np.quantile(ratios, (0, 0.25, 0.5, 0.75, 1))]
        yield f"| {name} | {len(ratios)} | {' | '.join(cells)} |"


def _forecasts(both: Both) -> Iterator[str]:
    """Median and worst errors."""
    out = held_out({run.source for run, _ in both})
    seen = [one for run, one in both if run.source not in out]
    unseen = [one for run, one in both if run.source in out]
    names = sorted({one.card for one in unseen})
    parts = [seen, unseen, *([one for one in unseen if one.card == name] for name in names)]
    yield f"| errors: median, worst | fitted | held out | {' | '.join(names)} | good enough |"
    yield "|---|" + "---:|" * len(parts) + "---|"
    for name, fit in FITS.items():
        forecast = fit(seen)
        off = [errors(forecast, part) for part in parts]
        cells = [f"{np.median(part):.0%}, {max(part):.0%}" for part in off]
        good = "yes" if max(off[1]) <= GOOD_ENOUGH else "no"
        yield f"| {name} | {' | '.join(cells)} | {good} |"


def _orders(both: Both) -> Iterator[str]:
    """Whether bounds are in the published order, how fast copies are, whether sources agree."""
    for name, same in (("ways on a card", "card"), ("cards for a way", "techniques")):
        pairs = pairs_by(((run.source, run.what, getattr(run, same)), one) for run, one in both)
        told, right = order(pairs, SAME_TIME)
        yield (
            f"Two {name}, by one source: {len(pairs)} pairs; of {told} bounds that differ by more "
            f"than 5 %, {right} are in the published order."
        )
    ways = pairs_by(((run.source, run.what, run.card), (run, one)) for run, one in both)
    shares = [
        other.copied_s / (other.published_s - one.published_s)
        for (run, one), (offloaded, other) in ways
        if run.techniques in PLAIN and offloaded.offloads
    ]
    yield f"Copies of offloaded weights: at {min(shares):.0%} to {max(shares):.0%} of the link."
    plain = ((run, one) for run, one in both if run.techniques in PLAIN)
    again = pairs_by(
        ((run.workload, run.card, *run.call.items()), (run, one)) for run, one in plain
    )
    apart = [
        max(one.ratio, other.ratio) / min(one.ratio, other.ratio) - 1
        for (run, one), (elsewhere, other) in again
        if run.source != elsewhere.source
    ]
    yield (
        f"Two sources of one call on one card, each by its bound: {len(apart)} pairs, "
        f"{np.median(apart):.0%} apart in the median, {max(apart):.0%} at worst."
    )


def _runs(both: Both) -> Iterator[str]:
    """Each of them."""
    yield "| call | techniques | card | published, s | bound, s | published / bound |"
    yield "|---|---|---|---:|---:|---:|"
    for run, one in both:
        size = "".join(f", {name} {value}" for name, value in run.call.items())
        yield (
            f"| {run.workload}{size}, calls of the denoiser: {run.calls or 1} | "
            f"{' + '.join(run.techniques)} | {run.card} | [{one.published_s:.4g}]({run.source}) | "
            f"{one.bound_s:.4g} | {one.ratio:.2f} |"
        )


def tables(both: Both) -> Iterator[str]:
    """Everything that the study says."""
    for part in (_runs, _ratios, _forecasts, _orders):
        yield from (*part(both), "")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found = []
    for number, run in enumerate(runs(), 1):
        print(f"{number}/{len(runs())} {run.workload}, {run.card}", file=sys.stderr, flush=True)
        found.append((run, timed(run)))
    print(*tables(found), sep="\n")
