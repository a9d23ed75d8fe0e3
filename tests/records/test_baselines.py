"""Stored baselines: everything that can be wrong with a file, and what is said of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fixtures.records import baselines
from fixtures.records.baselines import Baseline, BaselineError, read_baseline
from tests.support.odd import DROPPED, spoilt
from tests.support.runs import HARDWARE, entry, latency

STORED = sorted(Path(baselines.__file__).parents[2].glob("baselines/*/*.json"))
"""The baselines of this repository."""
KEY, WORKLOAD = "cpu", "storybook"
SOUND = Baseline(WORKLOAD, KEY, {"fp32": entry(), "fp16": entry()})


def test_sessions_are_of_one_kind_where_all_facts_are_the_same() -> None:
    kinds = [HARDWARE, {**HARDWARE, "threads": 2}, {**HARDWARE, "instruction_sets": []}, HARDWARE]
    sessions = [latency(hardware=kind, date=str(day)) for day, kind in enumerate(kinds)]
    stored = entry(latency=tuple(sessions))
    assert stored.sessions_on(dict(HARDWARE)) == (sessions[0], sessions[3])
    assert stored.sessions_on({}) == ()


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_stored_baseline_of_this_repository_is_sound_and_in_the_one_text_form(path: Path) -> None:
    baseline = read_baseline(path, device_key=path.parent.name, workload=path.stem)
    assert baseline.scenarios
    assert baseline.text() == path.read_text(encoding="utf-8")


def test_there_are_baselines_in_this_repository() -> None:
    assert {path.parent.name for path in STORED} >= {"cpu", "simulated"}


# Files that cannot be used


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        ("schema", 2, "has schema 2, this suite reads 5"),
        ("device", "nvidia-h200", "was recorded on device 'nvidia-h200', not on 'cpu'"),
        ("workload", "sd15", "holds workload 'sd15', not 'storybook'"),
        ("surprise", 1, "is not a baseline: at surprise"),
        ("scenarios/fp16/recorded", DROPPED, "at scenarios.fp16.recorded"),
        ("scenarios/fp16/recorded/reason", "", "at scenarios.fp16.recorded.reason"),
        ("scenarios/fp16/recorded/software/torch", 2.13, "recorded.software.torch"),
        ("scenarios/fp16/latency/0/judged_ms/0", 1e308, "at scenarios.fp16.latency.0.judged_ms.0"),
        ("scenarios/fp16/latency/0/judged_ms/0", "NaN", "at scenarios.fp16.latency.0.judged_ms.0"),
        (
            "scenarios/fp16/latency/0/judged_ms",
            [],
            "at scenarios.fp16.latency.0: every process has a ratio",
        ),
        ("scenarios/fp16/latency/0/ratios/1", -0.5, "at scenarios.fp16.latency.0.ratios.1"),
        ("scenarios/fp16/component_peak_bytes/whole", 0, "fp16.component_peak_bytes.whole"),
        ("scenarios/fp16/images", ["https://x/y.webp"], "at scenarios.fp16.images.0"),
        ("scenarios/fp16/ssim", 1.5, "at scenarios.fp16.ssim"),
        ("scenarios/fp16/ssim", "NaN", "at scenarios.fp16.ssim"),
    ],
)
def test_a_wrong_field_is_refused_and_named_in_one_sentence_with_a_remedy(
    tmp_path: Path, where: str, value: Any, message: str
) -> None:
    path = tmp_path / f"{WORKLOAD}.json"
    place = tuple(int(part) if part.isdigit() else part for part in where.split("/"))
    path.write_text(spoilt(json.loads(SOUND.text()), place, value), encoding="utf-8")
    with pytest.raises(BaselineError) as caught:
        read_baseline(path, device_key=KEY, workload=WORKLOAD)
    sentence = str(caught.value)
    assert message in sentence
    assert sentence.startswith(f"Baseline {path} ")
    assert f"git checkout -- {path}" in sentence
    assert "nox -s refresh" in sentence
    assert sentence.isprintable()
    assert len(sentence) < 1000


def test_the_schema_before_this_one_names_the_command_that_converts_it(tmp_path: Path) -> None:
    path = tmp_path / f"{WORKLOAD}.json"
    path.write_text(spoilt(json.loads(SOUND.text()), ("schema",), 4), encoding="utf-8")
    command = f"'git show 4fca7a30:fixtures/commands/convert.py | python - {tmp_path}'."
    with pytest.raises(BaselineError, match=f"convert it with {re.escape(command)}$"):
        read_baseline(path, device_key=KEY, workload=WORKLOAD)
