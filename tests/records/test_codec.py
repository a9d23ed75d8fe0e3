"""Records as JSON: nothing is lost, and nothing else is taken for one."""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.records import baselines
from fixtures.records.codec import STRICT, Codec, RecordError
from fixtures.records.fit import FIT
from fixtures.records.merging import MESSAGE
from fixtures.records.record import AtPeak
from fixtures.records.run import RESULTS
from fixtures.records.timing import Interval
from tests.records.strategies import of_type
from tests.support.odd import DROPPED, spoilt
from tests.support.runs import entry, run_record, scenario_record, timing, verdict

WIDE = settings(max_examples=50, deadline=None, derandomize=True, database=None)
RUN = run_record(
    scenario_record(
        "fp16",
        counts=entry().counts,
        component_peak_bytes={"whole": 7},
        ssim=0.5,
        speedup=Interval(2.0, 1.0, 3.0),
        timings=[timing()],
        at_peak=AtPeak("vae", {"vae": 1}),
        work={"copy": (1, 2, 3)},
        verdicts=[verdict("storybook-fp16")],
    )
)


def refusal(codec: Codec[Any], stored: Any) -> str:
    """What is said of a file with this content."""
    text = stored if isinstance(stored, (str, bytes)) else json.dumps(stored)
    with pytest.raises(RecordError) as caught:
        codec.load(text, "results.json")
    sentence = str(caught.value)
    assert sentence.startswith("results.json ")
    assert sentence.isprintable()
    assert len(sentence) < 400
    return sentence


def plain(codec: Codec[Any], record: Any) -> Any:
    """A record as any reader of JSON sees it."""
    return json.loads(codec.dump(record))


def spoilt_run(where: str, value: Any) -> str:
    """The text of a run with one place as it should not be."""
    place = tuple(int(part) if part.isdigit() else part for part in where.split("/"))
    return spoilt(plain(RESULTS, RUN), place, value)


# Round trips


CODECS: list[Codec[Any]] = [RESULTS, baselines.CODEC, MESSAGE, FIT]


@pytest.mark.parametrize(
    ("codec", "records"),
    [(codec, of_type(codec.of)) for codec in CODECS],
    ids=[codec.name for codec in CODECS],
)
@WIDE
@given(data=st.data())
def test_a_record_survives(
    codec: Codec[Any], records: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    record = data.draw(records)
    text = codec.dump(record)
    json.loads(text, parse_constant=pytest.fail)  # any reader of JSON takes the file
    again = codec.load(text, "here")
    assert repr(again) == repr(record)  # NaN is not equal to itself
    assert codec.dump(again) == text


def record_types(of: Any) -> Iterator[type]:
    """Every dataclass that a type is made of."""
    if dataclasses.is_dataclass(of) and isinstance(of, type):
        yield of
        for hint in typing.get_type_hints(of).values():
            yield from record_types(hint)
    for part in typing.get_args(of):
        yield from record_types(part)


@pytest.mark.parametrize(
    "of", dict.fromkeys(record for codec in CODECS for record in record_types(codec.of))
)
def test_every_record_is_held_to_its_types_strictly(of: Any) -> None:
    assert of.__pydantic_config__ is STRICT


# What is no record


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"notes": [], "notes": []}', "('notes' twice in one object: which is meant?)"),
        ('{"a": {"b\\n": 1, "b\\n": 2}}', "('b?' twice in one object: which is meant?)"),
        ("", "is empty"),
        (" \n\t", "is empty"),
        ('{"schema": 3} {}', "is not JSON"),
        ("[" * 200_000, "is not JSON"),
        ('{"a": NaN}', "is not JSON (NaN is not a JSON number)"),
        ('{"a": [1, -Infinity]}', "is not JSON (-Infinity is not a JSON number)"),
        ("9" * 5000, "is not JSON"),
        ("[]", "should be an object"),
    ],
)
def test_what_is_no_json_object_is_refused(codec: Codec[Any], text: str, message: str) -> None:
    assert message in refusal(codec, text)


@pytest.mark.parametrize("codec", [RESULTS, baselines.CODEC, FIT])
@pytest.mark.parametrize("schema", [..., None, 0, 1, 99, "2", "3", True, [3] * 1000, {"a": 3}])
def test_another_schema_is_refused(codec: Codec[Any], schema: Any) -> None:
    document = {} if schema is ... else {"schema": schema}
    sentence = refusal(codec, {"scenarios": {}, **document})
    assert sentence.startswith("results.json has schema ")
    assert sentence.endswith(f", this suite reads {codec.schema}")


RECORD = "scenarios/storybook-fp16"
FIRST_GROUP = "scenarios.storybook-fp16.timings.0.groups.0"


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("hardware", []),
        (f"{RECORD}/id", DROPPED),
        (f"{RECORD}/surprise", 1),
        (f"{RECORD}/counts/rows/operations//aten::mm", -1),
        (f"{RECORD}/speedup/low", DROPPED),
        (f"{RECORD}/timings/0/groups/0/candidate_s/0", "0.1"),
        (f"{RECORD}/at_peak/held_bytes/vae", 2**63),
        (f"{RECORD}/wall_ms", 1e308),
        (f"{RECORD}/wall_ms", 5e-324),
        (f"{RECORD}/verdicts/0/outcome", "fine"),
    ],
)
def test_a_wrong_field_of_results_is_refused_and_named(where: str, value: Any) -> None:
    sentence = refusal(RESULTS, spoilt_run(where, value))
    assert sentence.startswith("results.json is not the results of a run: at ")
    assert f"at {where.replace('/', '.')}" in sentence


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        (f"{RECORD}/timings/0/groups/0/candidate_s", [0.1], f"at {FIRST_GROUP}: a "),
        (f"{RECORD}/id", "sd15-fp16", "'storybook-fp16' calls itself 'sd15-fp16'"),
        # Python's own reader takes half a character, and no file could be written with it.
        (f"{RECORD}/changed", ["\ud800"], "Invalid JSON"),
        # The sentence stays on one line.
        ("a\n\x1b[31mb" + "c" * 999, 1, "at a??[31mbc"),
    ],
)
def test_what_no_run_has_is_refused(where: str, value: Any, message: str) -> None:
    assert message in refusal(RESULTS, spoilt_run(where, value))


# Files


def _make_huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(RESULTS.size_limit_bytes + 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "cannot be read (No such file or directory)"),
        (Path.mkdir, "cannot be read (Is a directory)"),
        (lambda path: path.write_bytes(b"\xff\xfe\x00"), "cannot be read (it is not UTF-8 text)"),
        (_make_huge, "is larger than 268435456 bytes"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, make: Callable[[Path], None], message: str
) -> None:
    path = tmp_path / "results.json"
    path.write_text(RESULTS.dump(RUN), encoding="utf-8")
    assert RESULTS.read(path) == RUN
    path.unlink()
    make(path)
    with pytest.raises(RecordError) as caught:
        RESULTS.read(path)
    assert str(caught.value) == f"{path} {message}"
