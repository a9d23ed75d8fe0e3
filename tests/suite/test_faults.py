"""Real faults in a real run fail exactly the right test, and no other."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from fixtures.workloads import default_workloads
from tests.support.running import run_suite

pytestmark = pytest.mark.long
EXPECTED = {
    "storybook-channels_last": {"test_latency"},  # 60 % slower
    "storybook-bf16": {"test_counters"},  # a leftover upcast to fp32
    "storybook-attention_slicing": {"test_activation"},  # silently not applied
    "storybook-256-vae_tiling": {"test_activation"},  # left untiled
    "storybook-batch8-vae_slicing": {"test_counters"},  # one more copy and synchronisation
    "storybook-sdpa": {"test_visual_equivalence"},  # a wrong scheduler step
    "storybook-traced_unet": {"test_activation"},  # out of memory
    "storybook-autocast": {"test_activation"},  # raises, and leaves what poisons others
    "storybook-layerwise_casting": {"test_visual_equivalence"},  # draws NaN
    "storybook-dit-first_block_cache": {"test_visual_equivalence"},  # a red astronaut
    "storybook-naive_attention": set(),  # sound, and run after the others
}
SLOW_DOWN = 0.60
"""More than the limit on any machine, whatever its speed."""
TIMED = ("storybook-channels_last", "storybook-naive_attention")


@pytest.fixture(scope="module")
def faulty_run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Test results by scenario and test: `passed`, `skipped`, or the failure's sentence."""
    report = tmp_path_factory.mktemp("faults") / "junit.xml"
    scenarios = " or ".join(f"[{name}]" for name in EXPECTED)
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


@pytest.mark.parametrize("name", EXPECTED)
def test_each_fault_fails_exactly_the_right_test(
    name: str, faulty_run: dict[str, dict[str, str]]
) -> None:
    results = faulty_run[name]
    assert _failed(results) == EXPECTED[name], results
    assert "test_activation" in results


@pytest.mark.parametrize(
    ("name", "test", "words"),
    [
        ("storybook-channels_last", "test_latency", ["of the reference's", "limit", "accept it"]),
        (
            "storybook-bf16",
            "test_counters",
            ["_to_copy +40 in UNet2DConditionModel", "accept it with: "],
        ),
        ("storybook-attention_slicing", "test_activation", ["not in effect", "AttnProcessor2_0"]),
        ("storybook-256-vae_tiling", "test_activation", ["decoded in 1 calls"]),
        ("storybook-batch8-vae_slicing", "test_counters", ["clone +", "_local_scalar_dense +"]),
        ("storybook-sdpa", "test_visual_equivalence", ["SSIM with the fp32 image is", "limit"]),
        (
            "storybook-dit-first_block_cache",
            "test_visual_equivalence",
            ["the image shows main colour red where fp32's shows white"],
        ),
        ("storybook-traced_unet", "test_activation", ["ran out of memory on cpu", "-k"]),
        (
            "storybook-autocast",
            "test_activation",
            [
                "raised ZeroDivisionError: injected (first call); it also left behind: "
                "default device: None -> ",
                "meta; ",
                "autocast on the CPU: False -> True",
            ],
        ),
        ("storybook-layerwise_casting", "test_visual_equivalence", ["NaN or infinity"]),
    ],
)
def test_a_failure_says_in_one_sentence_what_is_wrong(
    name: str, test: str, words: list[str], faulty_run: dict[str, dict[str, str]]
) -> None:
    sentence = faulty_run[name][test]
    assert name in sentence
    for word in words:
        assert word in sentence
    assert "Traceback" not in sentence


@pytest.mark.parametrize("fault", ["slow UNet", "slow call"])
def test_a_release_that_is_slower_in_everything_fails_by_its_latency(
    fault: str, tmp_path: Path
) -> None:
    results = _run_with(fault, "[storybook-fp32]", tmp_path)
    assert _failed(results["storybook-fp32"]) == {"test_latency"}, results


@pytest.mark.parametrize("fault", ["scaled latents", "exchanged channels", "other schedule"])
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


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        ("version check", "packaging/version.py:"),
        ("walk over modules", "torch/nn/modules/module.py:Module.named_modules"),
        ("emptied cache", "empty_cache (a step) 0 -> "),
    ],
)
def test_more_python_in_a_forward_fails_by_the_host_s_calls(
    fault: str, named: str, tmp_path: Path
) -> None:
    results = _run_with(fault, "[storybook-fp32] and not test_latency", tmp_path)
    assert _failed(results["storybook-fp32"]) == {"test_host_calls"}, results
    assert named in results["storybook-fp32"]["test_host_calls"]


def test_a_call_that_does_more_each_time_is_a_fault(tmp_path: Path) -> None:
    chosen = "[storybook-fp32] and (test_faults or test_counters)"
    results = _run_with("growing call", chosen, tmp_path)
    assert _failed(results["storybook-fp32"]) == {"test_faults"}, results
    named = "a step of the next call of the same pipeline does more: host calls +"
    assert named in results["storybook-fp32"]["test_faults"]


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
