"""Stored baselines: everything that can be wrong with a file, and what is said of it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.records import baselines
from fixtures.records.baselines import Baseline, BaselineError, read_baseline
from tests.support.runs import HARDWARE, entry, latency

WIDE = settings(max_examples=50, deadline=None, derandomize=True, database=None)
STORED = sorted(Path(baselines.__file__).parents[2].glob("baselines/*/*.json"))
"""The baselines of this repository."""
KEY, WORKLOAD = "cpu", "storybook"
SOUND = Baseline(WORKLOAD, KEY, {"fp32": entry(), "fp16": entry()})


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A sound file."""
    path = tmp_path / f"{WORKLOAD}.json"
    path.write_text(SOUND.text(), encoding="utf-8")
    return path


def refusal(path: Path) -> str:
    """What is said about a file that cannot be used: one sentence with the file and a remedy."""
    with pytest.raises(BaselineError) as caught:
        read_baseline(path, device_key=KEY, workload=WORKLOAD)
    sentence = str(caught.value)
    assert sentence.startswith(f"Baseline {path} ")
    assert f"git checkout -- {path}" in sentence
    assert "nox -s refresh" in sentence
    assert sentence.isprintable()
    assert len(sentence) < 1000
    return sentence


def spoil(path: Path, where: str, value: Any) -> None:
    """Set one field of a file; `...` removes it."""
    document = json.loads(path.read_text(encoding="utf-8"))
    *parts, last = [int(part) if part.isdigit() else part for part in where.split("/")]
    inner = document
    for part in parts:
        inner = inner[part]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    path.write_text(json.dumps(document), encoding="utf-8")


def test_a_sound_file_is_read(stored: Path) -> None:
    assert read_baseline(stored, device_key=KEY, workload=WORKLOAD) == SOUND


def test_the_logarithms_of_a_session_are_those_of_its_figures() -> None:
    session = latency((1.0, math.e), judged_ms=(1.0, math.e**2))
    assert session.log_ratios == pytest.approx([0.0, 1.0])
    assert session.log_ms == pytest.approx([0.0, 2.0])


def test_sessions_are_of_one_kind_where_all_facts_are_the_same() -> None:
    kinds = [HARDWARE, {**HARDWARE, "threads": 2}, {**HARDWARE, "instruction_sets": []}, HARDWARE]
    sessions = [latency(hardware=kind, date=str(day)) for day, kind in enumerate(kinds)]
    stored = entry(latency=tuple(sessions))
    assert stored.sessions_on(dict(HARDWARE)) == (sessions[0], sessions[3])
    assert stored.sessions_on({}) == ()


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_stored_baseline_of_this_repository_is_sound_and_in_the_one_text_form(
    path: Path,
) -> None:
    found = read_baseline(path, device_key=path.parent.name, workload=path.stem)
    assert found.scenarios
    assert found.text() == path.read_text(encoding="utf-8")


def test_there_are_baselines_in_this_repository() -> None:
    assert {path.parent.name for path in STORED} >= {"cpu", "simulated"}


# Files that cannot be used


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (Path.unlink, "cannot be read"),
        (_truncate, "is not JSON"),
        (lambda path: path.write_bytes(b"[]"), "is not a baseline"),
    ],
)
def test_a_file_that_is_no_baseline_is_refused_with_a_remedy(
    stored: Path, change: Callable[[Path], None], message: str
) -> None:
    change(stored)
    assert message in refusal(stored)


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        ("schema", ..., "has schema None, this suite reads 4"),
        ("schema", 1, "has schema 1, this suite reads 4"),
        ("schema", 2, "has schema 2, this suite reads 4"),
        ("device", "nvidia-h200", "was recorded on device 'nvidia-h200', not on 'cpu'"),
        ("device", "", "at device"),
        ("workload", "sd15", "holds workload 'sd15', not 'storybook'"),
        ("surprise", 1, "at surprise"),
        ("scenarios/fp16/latency_ms", [1.0], "at scenarios.fp16.latency_ms"),
        ("scenarios/fp16/recorded", ..., "at scenarios.fp16.recorded"),
        ("scenarios/fp16/component_peak_bytes", ..., "at scenarios.fp16.component_peak_bytes"),
        ("scenarios/fp16/recorded/reason", "", "at scenarios.fp16.recorded.reason"),
        ("scenarios/fp16/latency/0/hardware", ..., "at scenarios.fp16.latency.0.hardware"),
        ("scenarios/fp16/recorded/software/torch", 2.13, "recorded.software.torch"),
        ("scenarios/fp16/latency/0/judged_ms/0", -1.0, "at scenarios.fp16.latency.0.judged_ms.0"),
        ("scenarios/fp16/latency/0/judged_ms/0", 0, "at scenarios.fp16.latency.0.judged_ms.0"),
        ("scenarios/fp16/latency/0/judged_ms/0", "98", "at scenarios.fp16.latency.0.judged_ms.0"),
        ("scenarios/fp16/latency/0/judged_ms/0", True, "at scenarios.fp16.latency.0.judged_ms.0"),
        ("scenarios/fp16/latency/0/judged_ms/0", "NaN", "at scenarios.fp16.latency.0.judged_ms.0"),
        ("scenarios/fp16/latency/0/judged_ms/0", math.nan, "NaN is not a JSON number"),
        ("scenarios/fp16/latency/0/judged_ms/0", math.inf, "Infinity is not a JSON number"),
        (
            "scenarios/fp16/latency/0/judged_ms",
            [],
            "at scenarios.fp16.latency.0: every process has a ratio",
        ),
        ("scenarios/fp16/latency/0/ratios", ..., "at scenarios.fp16.latency.0.ratios"),
        ("scenarios/fp16/latency/0/ratios/1", -0.5, "at scenarios.fp16.latency.0.ratios.1"),
        ("scenarios/fp16/component_peak_bytes/whole", -1, "fp16.component_peak_bytes.whole"),
        ("scenarios/fp16/component_peak_bytes/whole", 0, "fp16.component_peak_bytes.whole"),
        ("scenarios/fp16/component_peak_bytes/whole", 0.5, "fp16.component_peak_bytes.whole"),
        ("scenarios/fp16/counts/rows/operations//aten::mm", -1, "counts.rows.operations..aten::mm"),
        ("scenarios/fp16/counts/aten::mm", 1, "at scenarios.fp16.counts.aten::mm"),
        ("scenarios/fp16/ssim", 1.5, "at scenarios.fp16.ssim"),
        ("scenarios/fp16/ssim", "NaN", "at scenarios.fp16.ssim"),
    ],
)
def test_a_wrong_field_is_refused_and_named(
    stored: Path, where: str, value: Any, message: str
) -> None:
    spoil(stored, where, value)
    assert message in refusal(stored)


def test_a_number_too_large_to_be_finite_is_refused(stored: Path) -> None:
    text = stored.read_text(encoding="utf-8")
    stored.write_text(text.replace("98.0", "1e999", 1), encoding="utf-8")
    assert "at scenarios.fp16.latency.0.judged_ms.0" in refusal(stored)


@WIDE
@given(cut=st.integers(0, 10_000))
def test_no_truncation_is_taken_for_a_baseline(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "cut.json"
    whole = SOUND.text().rstrip()
    path.write_text(whole[: cut % len(whole)], encoding="utf-8")
    refusal(path)


def test_processes_without_a_latency_each_are_refused() -> None:
    with pytest.raises(ValueError, match="every process has a ratio and a latency"):
        latency((1.0, 1.0), judged_ms=(1.0,))
