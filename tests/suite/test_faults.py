"""Real faults in a real run fail exactly the right test, and no other."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from fixtures.catalogue.workloads import default_workloads
from tests.support.running import run_suite

pytestmark = pytest.mark.long
UPCAST = "_to_copy +40 in UNet2DConditionModel"
FAULTS: Mapping[str, tuple[str, Sequence[str]]] = {
    # 60 % slower
    "channels_last": ("test_latency", ["of the reference's", "limit", "accept it"]),
    # a leftover upcast to fp32
    "bf16": ("test_counters", [UPCAST, "accept it with: "]),
    # silently not applied
    "attention_slicing": ("test_activation", ["not in effect", "have no SlicedAttnProcessor"]),
    # left untiled
    "256-vae_tiling": ("test_activation", ["the VAE's tiling is off"]),
    # one more copy and synchronisation
    "batch8-vae_slicing": ("test_counters", ["clone +", "_local_scalar_dense +"]),
    # a wrong scheduler step
    "sdpa": ("test_visual_equivalence", ["SSIM with the fp32 image is", "limit"]),
    # out of memory
    "traced_unet": ("test_activation", ["ran out of memory on cpu", "-k"]),
    # raises, and leaves what would poison others in its process
    "autocast": ("test_activation", ["raised ZeroDivisionError: injected"]),
    # draws NaN
    "layerwise_casting": ("test_visual_equivalence", ["NaN or infinity"]),
    # a red astronaut
    "dit-first_block_cache": ("test_visual_equivalence", ["from fp32's: channel difference"]),
}
SOUND = "storybook-naive_attention"
"""It runs after the others."""
SLOW_DOWN = 0.60
"""More than the limit on any machine, whatever its speed."""
TIMED = ("storybook-channels_last", SOUND)
FP32 = "[storybook-fp32]"
UNTIMED = f"{FP32} and not test_latency"
WALK = "torch/nn/modules/module.py:Module.named_modules"


@pytest.fixture(scope="module")
def faulty_run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Test results by scenario and test: `passed`, `skipped`, or the failure's sentence."""
    report = tmp_path_factory.mktemp("faults") / "junit.xml"
    names = (*(f"storybook-{name}" for name in FAULTS), SOUND)
    scenarios = " or ".join(f"[{name}]" for name in names)
    timed = " or ".join(f"[{name}]" for name in TIMED)
    result = run_suite(
        *("-p", "tests.support.faults"),
        *(f"--perf-workload={name}" for name in (*default_workloads("cpu"), "storybook-dit")),
        # A claim of less latency would be measured, too.
        *("-k", f"({scenarios}) and (not (test_latency or test_documented_claims) or {timed})"),
        *(f"--junitxml={report}", "--perf-budget=120"),
        PERF_FAULT_SLOW_DOWN=str(SLOW_DOWN),
    )
    assert result.returncode == 1, result.stdout + result.stderr
    return _results(report)


def _results(report: Path) -> dict[str, dict[str, str]]:
    results: dict[str, dict[str, str]] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        test, _, rest = case.attrib["name"].partition("[")
        result = "passed" if case.find("skipped") is None else "skipped"
        for failure in (*case.findall("failure"), *case.findall("error")):
            result = failure.text or failure.attrib["message"]  # the message is the first line
        results.setdefault(rest.rstrip("]"), {})[test] = result
    return results


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_fails_exactly_the_right_test_in_one_sentence_that_says_what_is_wrong(
    name: str, faulty_run: dict[str, dict[str, str]]
) -> None:
    scenario, (test, words) = f"storybook-{name}", FAULTS[name]
    results = faulty_run[scenario]
    assert _failed(results) == {test}, results
    assert "test_activation" in results
    for word in (scenario, *words):
        assert word in results[test]
    assert "Traceback" not in results[test]


def test_what_is_sound_passes_beside_them(faulty_run: dict[str, dict[str, str]]) -> None:
    assert _failed(faulty_run[SOUND]) == set()
    assert "test_activation" in faulty_run[SOUND]


@pytest.mark.parametrize(
    ("fault", "chosen", "test", "words"),
    [
        ("slow UNet", FP32, "test_latency", ""),
        ("version check", UNTIMED, "test_host_calls", "packaging/version.py:"),
        ("walk over modules", UNTIMED, "test_host_calls", WALK),
        ("emptied cache", UNTIMED, "test_host_calls", "empty_cache (a step) 0 -> "),
    ],
)
def test_a_release_that_is_slower_or_does_more_in_everything_fails_by_that(
    fault: str, chosen: str, test: str, words: str, tmp_path: Path
) -> None:
    results = _run_with(fault, chosen, tmp_path)["storybook-fp32"]
    assert _failed(results) == {test}, results
    assert words in results[test]


@pytest.mark.parametrize("fault", ["scaled latents", "other schedule"])
def test_wrong_numbers_from_right_operations_fail_by_what_was_drawn_before(
    fault: str, tmp_path: Path
) -> None:
    """Every technique has the fault, so images are fp32's, which is the frozen reference's no more.

    Each is held to its own stored one besides.
    """
    chosen = "([storybook-fp32] or [storybook-sdpa]) and not (test_latency or claims)"
    results = _run_with(fault, chosen, tmp_path)
    assert _failed(results["storybook-fp32"]) == {"test_visual_equivalence"}, results
    assert "the frozen reference's" in results["storybook-fp32"]["test_visual_equivalence"]
    assert "the baseline's" in results["storybook-fp32"]["test_visual_equivalence"]
    assert _failed(results["storybook-sdpa"]) == {"test_visual_equivalence"}, results
    assert "differs from the baseline's: " in results["storybook-sdpa"]["test_visual_equivalence"]


def _run_with(fault: str, chosen: str, folder: Path) -> dict[str, dict[str, str]]:
    report = folder / "junit.xml"
    result = run_suite(
        *("-p", "tests.support.faults", "-k", chosen),
        *(f"--junitxml={report}", "--perf-budget=600"),
        PERF_FAULT_OF_ALL=fault,
        PERF_FAULT_SLOW_DOWN=str(SLOW_DOWN),
    )
    assert result.returncode == 1, result.stdout + result.stderr
    return _results(report)


def _failed(results: dict[str, str]) -> set[str]:
    return {test for test, result in results.items() if result not in ("passed", "skipped")}
