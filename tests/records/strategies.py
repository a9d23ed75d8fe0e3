"""Records of every shape that a run can make, figures that are not finite among them."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from fixtures.records.baselines import Entry, LatencySession, Provenance
from fixtures.records.codec import LARGEST
from fixtures.records.counts import Counts, Number, Row
from fixtures.records.likeness import Likeness
from fixtures.records.outcome import Outcome, Reason, Remedy, Verdict
from fixtures.records.run import RunRecord, ScenarioRecord
from fixtures.records.timeline import AtPeak, Timeline
from fixtures.records.timing import Evidence, Group, Interval, Timing

NAMES = st.text(max_size=8)
WHOLE_NUMBERS = st.integers(0, 2**60)
SIZES = st.floats(1 / LARGEST, LARGEST)
FIGURES = (
    SIZES | SIZES.map(lambda size: -size) | st.sampled_from([0.0, math.nan, math.inf, -math.inf])
)
NAMED_NUMBERS = st.dictionaries(NAMES, WHOLE_NUMBERS, max_size=3)
REMEDIES = st.none() | st.builds(Remedy, NAMES, NAMES)
VERSIONS = st.dictionaries(NAMES, NAMES, max_size=3)
HARDWARE = st.dictionaries(
    NAMES, NAMES | st.integers(-9, 9) | st.booleans() | st.none() | st.lists(NAMES), max_size=3
)
DATA_URIS = st.lists(st.just("data:image/webp;base64,AAAA"), max_size=2)
ROWS = st.dictionaries(
    st.builds(Row, NAMES, NAMES, NAMES), st.builds(Number, WHOLE_NUMBERS, WHOLE_NUMBERS), max_size=4
)
COUNTS = st.builds(
    Counts,
    ROWS.map(lambda rows: dict(sorted(rows.items(), key=lambda item: (item[0][::2], item[0][1])))),
    WHOLE_NUMBERS,
    NAMES,
)

SECONDS = st.floats(1e-9, 1e9)


def _groups(fewest: int, *, disturbed: bool = True) -> st.SearchStrategy[Group]:
    """Groups of at least so many pairs of rounds."""
    return st.integers(fewest, 2).flatmap(
        lambda pairs: st.builds(
            Group,
            st.tuples(*[SECONDS] * (pairs + 1)),
            st.tuples(*[SECONDS] * pairs),
            st.just(()) | st.tuples(*[st.booleans() if disturbed else st.just(False)] * pairs),
        )
    )


TIMINGS = st.builds(  # a timing has at least one undisturbed pair of rounds
    Timing,
    st.tuples(_groups(1, disturbed=False), _groups(0)) | st.tuples(_groups(1, disturbed=False)),
    st.lists(SECONDS, min_size=1, max_size=3).map(tuple),
    st.builds(Evidence, FIGURES, FIGURES, FIGURES, NAMES),
)
TIMELINES = st.builds(
    Timeline,
    stride=st.integers(1, 2**60),
    live_bytes=st.lists(WHOLE_NUMBERS, max_size=3).map(tuple),
    phases=st.lists(st.tuples(WHOLE_NUMBERS, NAMES), min_size=1, max_size=3).map(tuple),
    peak_at=WHOLE_NUMBERS,
    alive_at_peak=NAMED_NUMBERS,
    work=st.dictionaries(NAMES, st.tuples(*[WHOLE_NUMBERS] * 3), max_size=3),
)
VERDICTS = st.builds(
    Verdict,
    scenario=NAMES,
    metric=NAMES,
    outcome=st.sampled_from(Outcome),
    text=NAMES,
    measured=st.none() | FIGURES,
    baseline=st.none() | FIGURES,
    limit=st.none() | FIGURES,
    detail=NAMES,
    against=NAMES,
    changed=st.none() | st.lists(NAMES, max_size=2).map(tuple),
    remedy=REMEDIES,
    places=st.lists(NAMES, max_size=2).map(tuple),
    not_run=st.sampled_from([None, "base", "head", "both"]),
)
CLASSES = st.dictionaries(NAMES, NAMES, max_size=2)
LIKENESS = st.builds(Likeness, FIGURES, FIGURES, FIGURES, st.none() | FIGURES, st.none() | FIGURES)
SCENARIO_RECORDS = st.builds(
    ScenarioRecord,
    id=NAMES,
    workload=NAMES,
    technique=NAMES,
    family=NAMES,
    documented_speedup=st.none() | FIGURES,
    unsupported=st.none() | st.builds(Reason, NAMES, REMEDIES),
    weights=NAMES,
    component_peak_bytes=NAMED_NUMBERS,
    reference_peak_bytes=st.none() | WHOLE_NUMBERS,
    counts=COUNTS,
    bound_ms=st.none() | FIGURES,
    ssim=st.none() | FIGURES,
    likeness=st.dictionaries(NAMES, st.lists(LIKENESS, max_size=2), max_size=2),
    not_compared=st.dictionaries(NAMES, st.tuples(st.sampled_from(Outcome), NAMES), max_size=2),
    stored_apart=st.lists(LIKENESS, max_size=2),
    shown=st.lists(CLASSES, max_size=2),
    wanted=st.dictionaries(NAMES, st.lists(CLASSES, max_size=2), max_size=2),
    wall_ms=st.none() | FIGURES,
    speedup=st.none() | st.builds(Interval, FIGURES, FIGURES, FIGURES),
    timings=st.lists(TIMINGS, max_size=2),
    timed_against=NAMES,
    timeline=st.none() | TIMELINES,
    baseline_ratios=st.lists(FIGURES, max_size=3),
    changed=st.lists(NAMES, max_size=3),
    images=DATA_URIS,
    stored_images=DATA_URIS,
    flip_maps=st.dictionaries(NAMES, DATA_URIS, max_size=2),
    verdicts=st.lists(VERDICTS, max_size=3),
)
RUNS = st.builds(
    RunRecord,
    device_key=NAMES,
    hardware=HARDWARE,
    software=VERSIONS,
    weights=NAMES,
    scenarios=st.lists(SCENARIO_RECORDS, max_size=3).map(
        lambda records: {one.id: one for one in records}
    ),
    notes=st.lists(NAMES, unique=True, max_size=3),
    claims=st.dictionaries(NAMES, st.integers(1, 9), max_size=3),
    recorded_at=NAMES,
    commit=NAMES,
)

TEXTS = st.text(min_size=1, max_size=8)
PROVENANCES = st.builds(
    Provenance,
    date=NAMES,
    commit=NAMES,
    software=VERSIONS,
    reason=TEXTS,
)
POSITIVE = st.floats(1e-6, 1e9)
SESSIONS = st.integers(1, 5).flatmap(
    lambda processes: st.builds(
        LatencySession,
        date=NAMES,
        commit=NAMES,
        software=VERSIONS,
        hardware=HARDWARE,
        timing=st.dictionaries(NAMES, st.integers(1, 99) | NAMES, max_size=2),
        judged_ms=st.tuples(*[POSITIVE] * processes),
        ratios=st.tuples(*[POSITIVE] * processes),
    )
)
ENTRIES = st.builds(
    Entry,
    recorded=PROVENANCES,
    component_peak_bytes=st.dictionaries(NAMES, st.integers(1, 2**60), max_size=3),
    counts=COUNTS,
    latency=st.lists(SESSIONS, max_size=3).map(tuple),
    ssim=st.none() | st.floats(-1, 1),
    images=DATA_URIS.map(tuple),
    differences=DATA_URIS.map(tuple),
    at_peak=st.none() | st.builds(AtPeak, NAMES, NAMED_NUMBERS),
)
"""Entries with and without a clock."""
