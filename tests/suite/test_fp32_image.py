"""Images in a run: fp32's held to the frozen reference's, and each to its own stored one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures.records.baseline_store import BaselineStore
from tests.support import fake_bench
from tests.support.fake_scenarios import IMAGES
from tests.support.running import run_suite

FP32 = "[storybook-fp32]"
BF16 = "[storybook-bf16] and not test_latency"
BOTH = f"({FP32} or [storybook-bf16]) and not test_latency"
REFRESH = ("--perf-update-baselines", "--perf-reason", "test")
PALE = {"FAKE_PALE": "storybook-fp32"}
FAILS = {"FAKE_FROZEN": "no kernel"}
FROM_FROZEN = (
    "the image differs from the frozen reference's: image difference 5.10/255 (limit 0.10/255)"
)
FROM_STORED = "the image differs from the baseline's: "
BEYOND = re.compile(rf"storybook-\w+: {FROM_STORED}.*\(limit .*; if it is meant, accept it")


def run(
    folder: Path, *options: str, only: str = f"{FP32} and not test_latency", **environment: str
) -> subprocess.CompletedProcess[str]:
    return run_suite(
        *(*fake_bench.OPTIONS, "--perf-baselines", str(folder), "-k", only, *options),
        "--show-capture=no",
        **environment,
    )


def failures(result: subprocess.CompletedProcess[str]) -> list[str]:
    """The names of the tests that failed."""
    lines = result.stdout.splitlines()
    return [line.split("::")[1].split("[")[0] for line in lines if line.startswith("FAILED")]


def test_a_refresh_stores_every_image_and_a_technique_s_as_its_difference(recorded: Path) -> None:
    store = BaselineStore(recorded)
    fp32, bf16 = (store.entry(fake_bench.KEY, "storybook", name) for name in ("fp32", "bf16"))
    assert fp32 is not None
    assert bf16 is not None
    assert fp32.images
    assert bf16.images == fp32.differences == ()
    for name in ("fp32", "bf16"):
        stored = store.images(fake_bench.KEY, "storybook", name)
        assert stored is not None
        assert abs(stored - IMAGES[:1]).max() <= 0.5 / 255 + 1e-6
    result = run(recorded, only=BOTH)
    assert result.returncode == pytest.ExitCode.OK, result.stdout


def test_an_image_that_changed_fails_beside_both(recorded: Path) -> None:
    result = run(recorded, **PALE)
    assert failures(result) == ["test_visual_equivalence"]
    assert FROM_FROZEN in result.stdout
    assert BEYOND.search(result.stdout)
    assert "changed since the baseline: no package version" in result.stdout


def test_a_technique_s_image_that_changed_fails_beside_its_own_and_can_be_accepted(
    recorded: Path, tmp_path: Path
) -> None:
    """Paler by 2 %: its SSIM with fp32's is within the limit."""
    pale = {"only": BF16, "FAKE_PALE": "storybook-bf16"}
    result = run(recorded, **pale)
    assert failures(result) == ["test_visual_equivalence"]
    assert BEYOND.search(result.stdout)
    assert "SSIM" not in " ".join(
        line for line in result.stdout.splitlines() if line.startswith("storybook-bf16: ")
    )
    folder = shutil.copytree(recorded, tmp_path / "baselines")
    path = folder / fake_bench.KEY / "storybook.json"
    before = json.loads(path.read_text())["scenarios"]
    assert run(folder, *REFRESH, **pale).returncode == pytest.ExitCode.OK
    assert json.loads(path.read_text())["scenarios"]["fp32"] == before["fp32"]
    assert run(folder, **pale).returncode == pytest.ExitCode.OK


def test_a_frozen_reference_that_fails_leaves_the_other_judgements_alone(recorded: Path) -> None:
    result = run(recorded, **FAILS, **PALE)
    assert failures(result) == ["test_visual_equivalence"]
    assert "the frozen reference does not run here (no kernel): there is" in result.stdout
    assert "Traceback" not in result.stdout
    assert BEYOND.search(result.stdout), "the stored image is judged all the same"
    bf16 = run(recorded, only=BF16, **FAILS)
    assert bf16.returncode == pytest.ExitCode.OK, bf16.stdout


def _remove(stored: dict[str, object]) -> None:
    del stored["images"]


def _spoil(stored: dict[str, object]) -> None:
    stored["images"] = ["data:image/webp;base64,AAAA"]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_remove, "no baseline is stored for its image difference"),
        (_spoil, "a stored image cannot be read"),
    ],
)
def test_without_a_stored_image_a_run_fails_with_the_command_that_records_it(
    damage: Callable[[dict[str, object]], None], words: str, recorded: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(recorded, tmp_path / "baselines")
    path = folder / fake_bench.KEY / "storybook.json"
    stored = json.loads(path.read_text())
    damage(stored["scenarios"]["fp32"])
    path.write_text(json.dumps(stored))
    result = run(folder, only=BOTH)
    assert failures(result) == ["test_visual_equivalence"] * 2
    (sentence,) = {
        line for line in result.stdout.splitlines() if line.startswith("storybook-fp32: ")
    }
    assert words in sentence
    assert '-k "[storybook-fp32]" --perf-reason "WHY"' in sentence
    assert "accept it with: " in sentence
    lost = "the fp32 image that it is a difference from is not stored"
    assert (lost if damage is _remove else words) in result.stdout


# A technique that is not timed


FP16 = "[storybook-fp16]"
NO_FP16 = {"FAKE_LACKS": "fp16 arithmetic", "FAKE_SETS": "avx2"}


def test_without_fp16_arithmetic_all_of_fp16_but_its_latency_is_recorded_and_judged(
    tmp_path: Path,
) -> None:
    made = run(tmp_path, *REFRESH, only=FP16, **NO_FP16)
    assert made.returncode == pytest.ExitCode.OK, made.stdout
    entry = BaselineStore(tmp_path).entry(fake_bench.KEY, "storybook", "fp16")
    assert entry is not None
    assert (entry.latency, entry.ssim) == ((), 1.0)
    assert entry.counts
    assert entry.component_peak_bytes
    result = run(tmp_path, "-rfs", only=FP16, **NO_FP16, FAKE_MORE="storybook-fp16")
    assert failures(result) == ["test_counters"]
    said = " ".join(result.stdout.split())
    assert "not judged: it has no fp16 arithmetic" in said
    assert "latency judged for 0 of 1; 0 unsupported, 0 not judged" in said
    elsewhere = run(tmp_path, only=FP16, FAKE_SETS="avx2 avx512_fp16")
    assert elsewhere.returncode == pytest.ExitCode.OK, elsewhere.stdout
    assert "half precision depends on the processor's instruction sets" in elsewhere.stdout
