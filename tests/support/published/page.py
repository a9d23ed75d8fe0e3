"""`docs/evidence.md`: every published figure and report beside ours, and how many agree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fixtures.devices.simulated.profiles import find_card
from fixtures.records.units import GIB
from tests.support.published import verdicts
from tests.support.published.excluded import EXCLUDED
from tests.support.published.measuring import taken, verdict_of, way_of
from tests.support.published.records import GB, Call, Figure, Report
from tests.support.published.reports import REPORTS
from tests.support.published.seen import SEEN
from tests.support.published.unseen import UNSEEN

PROTOCOL = Path(__file__).with_name("protocol.md")
FINDINGS = Path(__file__).with_name("findings.md")
GROUPS = ("unseen", "seen", "outside")
_UNITS = {GIB: "GiB", GB: "GB", 1024**2: "MiB"}
FIGURES = (*UNSEEN, *SEEN)
PEAKS = ("allocated", "reserved", "shown")
"""The counters that workspaces are in from an empty card on."""


@dataclass(frozen=True)
class Compared:
    """A figure or report, its row, and whether it is hit or right."""

    group: str
    kind: str
    row: str
    hit: bool


def compared_figure(figure: Figure) -> Compared:
    """Run it and compare."""
    group = verdicts.group_of(figure.seen, figure.outside)
    head = (
        f"| {words(figure)} | {_kind(figure)} | {figure.measured_on or figure.card} | "
        f"{figure.source.software} | {_published(figure)} | "
    )
    try:
        found = taken(figure)
    except Exception as error:  # whatever it is, the run is a miss
        reason = (
            f"failed: {str(error).splitlines()[0][:120] if str(error) else type(error).__name__}"
        )
        return Compared(
            group,
            verdicts.kind_of(figure),
            f"{head}- | - | - | **miss** | {figure.reason or reason} |",
            False,
        )
    ours = found.by_counter[figure.counter]
    hit = verdicts.is_hit(figure, ours)
    deviation = (
        "" if figure.bound else f"{verdicts.deviation(figure, ours):+.1%}".replace("%", " %")
    )
    reason = "" if hit else figure.reason or "not found"
    told = "hit" if hit else "**miss**"
    alone = f"{found.exact / figure.unit:.3f}" if figure.counter in PEAKS else ""
    row = f"{head}{ours / figure.unit:.3f} | {alone} | {deviation} | {told} | {reason} |"
    return Compared(group, verdicts.kind_of(figure), row, hit)


def compared_report(report: Report) -> Compared:
    """Run it and compare."""
    group = verdicts.group_of(report.seen, report.outside)
    memory_bytes = find_card(report.card).memory_bytes
    told = "fits" if report.fits else "out of memory"
    head = (
        f"| {_of_call(report.run)} | {report.measured_on or report.card} | "
        f"{report.source.software} | [{told}]({report.source.url}) | "
    )
    try:
        way = way_of(report.run, report.card)
    except Exception as error:  # whatever it is, the run is wrong
        return Compared(
            group, "", f"{head}- | - | **wrong** | failed: {type(error).__name__} |", False
        )
    says = verdict_of(way, memory_bytes)
    right = says == report.fits
    row = (
        f"{head}{way.needed_bytes / GIB:.2f} of {memory_bytes / GIB:.2f} | "
        f"{'fits' if says else 'out of memory'} | {'right' if right else '**wrong**'} | "
        f"{'' if right else report.reason or 'not found'} |"
    )
    return Compared(group, "", row, right)


def words(figure: Figure) -> str:
    """The run in a cell."""
    if figure.name or not isinstance(figure.run, Call):
        return figure.name
    return _of_call(figure.run)


def _of_call(call: Call) -> str:
    size = ", ".join(f"{name} {value}" for name, value in call.changes)
    how = " + ".join(f"`{one}`" for one in call.how) if isinstance(call.how, tuple) else ""
    return f"`{call.workload}`{', ' if size else ''}{size}{', ' if how else ''}{how}"


def _kind(figure: Figure) -> str:
    return f"{figure.counter}{', ' if figure.bound else ''}{figure.bound}"


def _published(figure: Figure) -> str:
    return f"[{figure.published} {_UNITS[figure.unit]}]({figure.source.url})"


def page(tell: Callable[[int, int], None] = lambda done, of: None) -> str:
    """The whole page.

    Args:
        tell: is told how many of how many figures and reports are compared.
    """
    figures: list[Compared] = []
    reports: list[Compared] = []
    total = len(FIGURES) + len(REPORTS)
    for figure in FIGURES:
        figures.append(compared_figure(figure))
        tell(len(figures), total)
    for report in REPORTS:
        reports.append(compared_report(report))
        tell(len(figures) + len(reports), total)
    return "\n".join(
        (
            PROTOCOL.read_text(encoding="utf-8"),
            *totals(figures, reports),
            FINDINGS.read_text(encoding="utf-8").rstrip(),
            *_tables(figures, reports),
        )
    )


def totals(figures: Sequence[Compared], reports: Sequence[Compared]) -> Iterator[str]:
    """How many are hit or right, by group."""
    yield "## Totals\n"
    yield "| | " + " | ".join(GROUPS) + " |"
    yield "|---|" + "---|" * len(GROUPS)
    for kind in (*verdicts.KINDS, "bounds"):
        yield _total(kind, [one for one in figures if one.kind == kind])
    yield _total("all figures", figures)
    yield _total("fits, or out of memory", reports)


def _total(kind: str, found: Iterable[Compared]) -> str:
    found = list(found)
    shares = (verdicts.share(one.hit for one in found if one.group == group) for group in GROUPS)
    return f"| {kind} | " + " | ".join(shares) + " |"


_HEADINGS = {
    "unseen": "unseen",
    "seen": "seen",
    "outside": "outside: cards of older architectures",
}


def _tables(figures: Sequence[Compared], reports: Sequence[Compared]) -> Iterator[str]:
    for group in GROUPS:
        yield f"\n## Figures, {_HEADINGS[group]}\n"
        yield (
            "| run | of | card | software | published | ours | without workspaces | deviation | |"
            " reason of a miss |"
        )
        yield "|---|---|---|---|---:|---:|---:|---:|---|---|"
        yield from (one.row for one in figures if one.group == group)
    for group in GROUPS:
        yield f"\n## Fits, or out of memory: {_HEADINGS[group]}\n"
        yield "| call | card | software | reported | needs, GiB | `fit` says | | reason |"
        yield "|---|---|---|---|---:|---|---|---|"
        yield from (one.row for one in reports if one.group == group)
    yield "\n## Excluded\n"
    yield "| what | why |"
    yield "|---|---|"
    yield from (f"| [{one.what}]({one.url}) | {one.why} |" for one in EXCLUDED)
    yield ""
