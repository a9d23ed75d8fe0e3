"""Documents with one place as it should not be."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

Place = tuple[str | int, ...]


def places(document: Any, here: Place = ()) -> Iterator[Place]:
    """Every place in a document but itself."""
    inside: Any = ()
    if isinstance(document, dict):
        inside = document.items()
    elif isinstance(document, list):
        inside = enumerate(document)
    for name, value in inside:
        yield (*here, name)
        yield from places(value, (*here, name))


DROPPED, DOUBLED, CUT = "<dropped>", "<doubled>", "<cut>"
ODD: tuple[Any, ...] = (
    *(DROPPED, DOUBLED, CUT, None, "", [], {}, True, "x", [None], [[]], {"a": None}),
    *(0, -1, 1, 1.5, 1e308, -1e308, 5e-324, 1e30, 1e12, 1e-12, 10**400, -(10**400), 2**63, 2**64),
    *("NaN", "Infinity", "-Infinity", "\ud800", "\x00\x1b[31m\n", "$x$ \\frac{", "x" * 5000),
)


def spoilt(document: Any, place: Place, odd: Any) -> str:
    """The text of a document with one place as it should not be."""
    document = copy.deepcopy(document)
    inner = document
    for name in place[:-1]:
        inner = inner[name]
    last: Any = place[-1]
    if odd is DROPPED:
        del inner[last]
    elif odd is DOUBLED and isinstance(inner, dict):
        text = json.dumps(inner[last])
        inner[last] = DOUBLED
        whole = json.dumps(document)
        return whole.replace(f'"{DOUBLED}"', f"{text}, {json.dumps(last)}: {text}")
    elif odd is DOUBLED:
        inner.append(inner[last])
    elif odd is CUT:
        inner[last] = CUT
        whole = json.dumps(document)
        return whole[: whole.index(CUT)]
    else:
        inner[last] = odd
    return json.dumps(document)
