"""Records of every shape that their types allow, figures that are not finite among them."""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Mapping
from enum import Enum
from types import UnionType
from typing import Annotated, Any

from hypothesis import strategies as st

from fixtures.records.baselines import Entry, LatencySession, Text
from fixtures.records.codec import LARGEST, Bytes, Count, Figure, Positive, Whole
from fixtures.records.counts import Counts, Number, Row
from fixtures.records.images import DataUri
from fixtures.records.run import RunRecord, ScenarioRecord
from fixtures.records.timing import Group, Timing

NAMES = st.text(max_size=8)
TEXTS = st.text(min_size=1, max_size=8)
WHOLE_NUMBERS = st.integers(0, 2**60)
ABOVE_ZERO = st.integers(1, 2**60)
SIZES = st.floats(1 / LARGEST, LARGEST)
SECONDS = st.floats(1e-9, 1e9)
BY_TYPE: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (bool, st.booleans()),
    (int, WHOLE_NUMBERS),
    (str, NAMES),
    (Text, TEXTS),
    (
        Figure,
        SIZES
        | SIZES.map(lambda size: -size)
        | st.sampled_from([0.0, math.nan, math.inf, -math.inf]),
    ),
    (Positive, SECONDS),
    (Count, WHOLE_NUMBERS),
    (Whole, WHOLE_NUMBERS),
    (Bytes, ABOVE_ZERO),
    (DataUri, st.just("data:image/webp;base64,AAAA")),
    (Any, NAMES | st.integers(-9, 9) | st.booleans() | st.none() | st.lists(NAMES)),
]


def of_type(hint: Any) -> st.SearchStrategy[Any]:
    """Whatever a field of this type may hold."""
    for type_, strategy in BY_TYPE:
        if hint == type_:
            return strategy
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is None:
        return st.sampled_from(hint) if issubclass(hint, Enum) else of_record(hint)
    if origin is Annotated:
        return of_type(parts[0])
    if origin is typing.Literal:
        return st.sampled_from(parts)
    if origin in (typing.Union, UnionType):
        return st.one_of([st.none() if part is type(None) else of_type(part) for part in parts])
    if origin in (dict, Mapping):
        return st.dictionaries(of_type(parts[0]), of_type(parts[1]), max_size=2)
    if origin is tuple and parts[-1] is not Ellipsis:
        return st.tuples(*map(of_type, parts))
    return st.lists(of_type(parts[0]), max_size=2).map(origin)


def of_record(of: Any, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A record of this class with every field of its type, but for these."""
    hints = typing.get_type_hints(of, include_extras=True)
    names = {field.name for field in dataclasses.fields(of)} - fields.keys()
    return st.builds(of, **fields, **{name: of_type(hints[name]) for name in names})


# What the types alone do not say


def _groups(fewest: int) -> st.SearchStrategy[Group]:
    """Groups of at least so many pairs of rounds."""
    return st.integers(fewest, 2).flatmap(
        lambda pairs: st.builds(
            Group, st.tuples(*[SECONDS] * (pairs + 1)), st.tuples(*[SECONDS] * pairs)
        )
    )


PAIRED, OTHERS = _groups(1), _groups(0)
ROWS = st.dictionaries(
    st.builds(Row, NAMES, NAMES, NAMES), st.builds(Number, WHOLE_NUMBERS, WHOLE_NUMBERS), max_size=4
)
BY_TYPE += [
    (
        Counts,
        of_record(
            Counts,
            rows=ROWS.map(
                lambda rows: dict(sorted(rows.items(), key=lambda item: (item[0][::2], item[0][1])))
            ),
        ),
    ),
    (
        Timing,
        of_record(
            Timing,
            groups=st.tuples(PAIRED, OTHERS) | st.tuples(PAIRED),
            wall_s=st.lists(SECONDS, min_size=1, max_size=3).map(tuple),
        ),
    ),
    (
        LatencySession,
        st.integers(1, 5).flatmap(
            lambda processes: of_record(
                LatencySession,
                judged_ms=st.tuples(*[SECONDS] * processes),
                ratios=st.tuples(*[SECONDS] * processes),
            )
        ),
    ),
]
NOT_STORED: dict[str, st.SearchStrategy[Any]] = {
    "faults": st.just({}),
    "bound_ms": st.none(),
    "work": st.just({}),
}
BY_TYPE += [(Entry, of_record(Entry, ssim=st.none() | st.floats(-1, 1), **NOT_STORED))]
BY_TYPE += [
    (
        RunRecord,
        of_record(
            RunRecord,
            scenarios=st.lists(of_record(ScenarioRecord), max_size=3).map(
                lambda records: {record.id: record for record in records}
            ),
            notes=st.lists(NAMES, unique=True, max_size=3),
        ),
    )
]
