"""A scenario with a known issue is expected to fail by that, and fails once it is fixed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from fixtures.catalogue.matrix import scenarios
from fixtures.catalogue.workloads import WORKLOADS
from fixtures.records.baseline_store import BaselineStore
from fixtures.suite.known_issues import CLOSE, KNOWN_ISSUES, KnownIssue, known_issue
from tests.suite.test_judged import BF16, run
from tests.support.fake_bench import IDLE, ISSUE, KEY

BROKEN = "storybook-bf16"
FAILS = {"FAKE_KNOWN": BROKEN, "FAKE_IDLE": BROKEN}
NEW = {"diffusers": "0.36.0", "transformers": "5.1.0"}


@pytest.mark.parametrize(
    "options",
    [[], pytest.param(["-n", "2"], marks=pytest.mark.long)],
    ids=["one process", "two workers"],
)
def test_what_is_known_to_fail_is_expected_and_not_judged(
    options: list[str], tmp_path: Path
) -> None:
    result = run(tmp_path, "-rx", "-k", f"{BF16} or [storybook-fp32]", *options, **FAILS)
    assert result.returncode == pytest.ExitCode.OK, result.stdout
    assert "10 xfailed" in result.stdout
    why = f"known issue {ISSUE}: not in effect: {IDLE}"
    assert f"XFAIL perf_tests/test_activation.py::test_activation[{BROKEN}]" in result.stdout
    assert f"{BROKEN}: {why}" in " ".join(result.stdout.split())
    assert "1 judged: 1 passed, 0 failed" in result.stdout
    assert "0 unsupported, 1 not judged" in result.stdout
    assert f": {why}" in result.stdout


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"FAKE_KNOWN": BROKEN}, f"{BROKEN}: runs, though {ISSUE} is a known issue: {CLOSE}"),
        ({**FAILS, "FAKE_IDLE_SAYS": "another"}, f"{BROKEN}: not in effect: another"),
        (FAILS, "Nothing was judged"),
    ],
    ids=["mended", "another failure", "nothing else"],
)
def test_what_is_mended_fails_otherwise_or_is_all_that_there_is_fails(
    environment: dict[str, str], says: str, tmp_path: Path
) -> None:
    result = run(tmp_path, "-k", BF16, "-rf", **environment)
    assert result.returncode == pytest.ExitCode.TESTS_FAILED, result.stdout
    assert says in " ".join(result.stdout.split())
    assert ("xfailed" in result.stdout) == (environment is FAILS)
    assert ("1 judged: 0 passed, 1 failed" in result.stdout) == (environment is not FAILS)


def test_a_refresh_records_the_others(tmp_path: Path) -> None:
    refresh = ("--perf-update-baselines", "--perf-reason", "a card")
    result = run(tmp_path, *refresh, "-k", f"{BF16} or [storybook-fp32]", **FAILS)
    assert result.returncode == pytest.ExitCode.OK, result.stdout
    stored = BaselineStore(tmp_path).baseline(KEY, "storybook")
    assert stored is not None
    assert list(stored.scenarios) == ["fp32"]


@pytest.mark.parametrize(
    ("versions", "is_known"),
    [
        ({}, True),
        ({"diffusers": "0.37.0"}, False),
        ({"diffusers": "0.36.0.dev0"}, True),
        ({"transformers": "absent"}, False),
    ],
    ids=str,
)
def test_it_is_known_of_releases(versions: Mapping[str, str], is_known: bool) -> None:
    issue = known_issue("flux-group_offload_leaf", {**NEW, **versions})
    assert (issue is not None) == is_known
    assert known_issue("flux-group_offload_block", {**NEW, **versions}) is None
    assert known_issue("flux-group_offload_leaf", {"diffusers": "0.36.0"}) is None


@pytest.mark.parametrize("issue", KNOWN_ISSUES, ids=lambda issue: issue.scenarios)
def test_every_entry_can_meet_a_scenario_and_says_where(issue: KnownIssue) -> None:
    versions = {
        name: next(v for v in _VERSIONS[name] if SpecifierSet(text).contains(v))
        for name, text in issue.releases.items()
    }
    assert any(issue.concerns(scenario.id, versions) for scenario in scenarios(WORKLOADS))
    assert issue.fails_with
    assert issue.url.startswith("https://github.com/")


_VERSIONS = {
    "diffusers": [f"0.{minor}.0" for minor in range(30, 60)],
    "transformers": ["4.57.6", "5.0.0"],
}
