"""Images in a run: each is held to its own stored one, also of what is not timed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures.records.baseline_store import BaselineStore
from tests.suite.test_judged import failed_tests
from tests.suite.test_judged import run as judged
from tests.support import fake_bench

VISUAL = "test_visual_equivalence"
BF16 = "[storybook-bf16] and not test_latency"
BOTH = "([storybook-fp32] or [storybook-bf16]) and not test_latency"
REFRESH = ("--perf-update-baselines", "--perf-reason", "test")
BEYOND = re.compile(
    r"storybook-\w+: the image differs from the baseline's: .*\(limit .*; if it is meant, accept it"
)


def run(
    folder: Path, only: str, *options: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    return judged(folder, "-k", only, "--show-capture=no", *options, **environment)


def test_a_technique_s_image_that_changed_fails_beside_its_own_and_can_be_accepted(
    recorded: Path, tmp_path: Path
) -> None:
    """Paler by 2 %: its SSIM with fp32's is within the limit."""
    pale = {"FAKE_PALE": "storybook-bf16"}
    result = run(recorded, BF16, **pale)
    assert failed_tests(result) == [f"{VISUAL}[storybook-bf16]"]
    assert BEYOND.search(result.stdout)
    assert "SSIM" not in " ".join(
        line for line in result.stdout.splitlines() if line.startswith("storybook-bf16: ")
    )
    folder = shutil.copytree(recorded, tmp_path / "baselines")
    path = folder / fake_bench.KEY / "storybook.json"
    before = json.loads(path.read_text())["scenarios"]
    assert run(folder, BF16, *REFRESH, **pale).returncode == pytest.ExitCode.OK
    assert json.loads(path.read_text())["scenarios"]["fp32"] == before["fp32"]
    assert run(folder, BF16, **pale).returncode == pytest.ExitCode.OK


def _remove(stored: dict[str, object]) -> None:
    del stored["images"]


def _spoil(stored: dict[str, object]) -> None:
    stored["images"] = ["data:image/webp;base64,AAAA"]


@pytest.mark.parametrize(
    ("damage", "words", "failing"),
    [
        (_remove, "no baseline is stored for its image difference", ["fp32"]),
        # How far the technique's was from fp32's cannot be told, either.
        (_spoil, "a stored image cannot be read", ["fp32", "bf16"]),
    ],
)
def test_without_a_stored_image_a_run_fails_with_the_command_that_records_it(
    damage: Callable[[dict[str, object]], None],
    words: str,
    failing: list[str],
    recorded: Path,
    tmp_path: Path,
) -> None:
    folder = shutil.copytree(recorded, tmp_path / "baselines")
    path = folder / fake_bench.KEY / "storybook.json"
    stored = json.loads(path.read_text())
    damage(stored["scenarios"]["fp32"])
    path.write_text(json.dumps(stored))
    result = run(folder, BOTH)
    assert failed_tests(result) == [f"{VISUAL}[storybook-{name}]" for name in failing]
    (sentence,) = {
        line for line in result.stdout.splitlines() if line.startswith("storybook-fp32: ")
    }
    assert words in sentence
    assert '-k "[storybook-fp32]" --perf-reason "WHY"' in sentence
    assert "accept it with: " in sentence


# A technique that is not timed


FP16 = "[storybook-fp16]"
NO_FP16 = {"FAKE_LACKS": "fp16 arithmetic", "FAKE_SETS": "avx2"}


def test_without_fp16_arithmetic_all_of_fp16_but_its_latency_is_recorded_and_judged(
    tmp_path: Path,
) -> None:
    made = run(tmp_path, FP16, *REFRESH, **NO_FP16)
    assert made.returncode == pytest.ExitCode.OK, made.stdout
    entry = BaselineStore(tmp_path).entry(fake_bench.KEY, "storybook", "fp16")
    assert entry is not None
    assert (entry.latency, entry.ssim) == ((), 1.0)
    assert entry.counts
    assert entry.component_peak_bytes
    result = run(tmp_path, FP16, "-rfs", **NO_FP16, FAKE_MORE="storybook-fp16")
    assert failed_tests(result) == [f"test_counters{FP16}"]
    said = " ".join(result.stdout.split())
    assert "not judged: it has no fp16 arithmetic" in said
    assert "latency judged for 0 of 1; 0 unsupported, 0 not judged" in said
    elsewhere = run(tmp_path, FP16, FAKE_SETS="avx2 avx512_fp16")
    assert elsewhere.returncode == pytest.ExitCode.OK, elsewhere.stdout
    assert "half precision depends on the processor's instruction sets" in elsewhere.stdout
