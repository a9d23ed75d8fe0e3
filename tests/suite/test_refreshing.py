"""A refresh in a given time: the most valuable first, each stored at once, and resumable."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fixtures.records.baseline_store import BaselineStore
from fixtures.records.baselines import Entry
from fixtures.records.run import RESULTS, RunRecord
from fixtures.scenarios import scenarios
from fixtures.settings import REPOSITORY, Settings
from fixtures.suite.parallel import check_workers
from fixtures.suite.refreshing import TimeLimit, is_of_this_refresh
from fixtures.suite.selecting import value_of
from tests.support import fake_bench
from tests.support.running import run_suite
from tests.support.runs import entry, latency

CHOSEN = "[storybook-sdpa] or [storybook-bf16] or [storybook-fp32]"


def refreshed(folder: Path, *options: str, reason: str = "first", **environment: str) -> Any:
    """A refresh of three scenarios on the bench that measures nothing."""
    return run_suite(
        *(*fake_bench.OPTIONS, "-k", CHOSEN, "-v", "-rs", "--perf-update-baselines"),
        *("--perf-reason", reason, "--perf-baselines", str(folder), *options),
        **environment,
    )


def entries_of(folder: Path) -> dict[str, Entry]:
    """What is stored."""
    baseline = BaselineStore(folder).baseline(fake_bench.KEY, "storybook")
    return dict(baseline.scenarios) if baseline else {}


def test_what_a_part_recorded_is_left_by_the_next_whatever_failed_between(tmp_path: Path) -> None:
    folder, report = tmp_path / "baselines", tmp_path / "report"
    minutes = ("--perf-minutes", "9")
    first = refreshed(folder, *minutes, f"--perf-report={report}", FAKE_LEAK="storybook-bf16")
    assert first.returncode == pytest.ExitCode.TESTS_FAILED
    assert "a call left 2.00 MiB allocated; nothing is recorded" in first.stdout
    assert first.stdout.index("storybook-fp32] PASSED") < first.stdout.index("storybook-sdpa]")
    assert "Baseline written:" in first.stdout
    assert entries_of(folder).keys() == {"fp32", "sdpa"}
    assert len(entries_of(folder)["sdpa"].latency[0].ratios) == 6
    records = RESULTS.read(report / "results.json").scenarios
    assert records["storybook-sdpa"].speedup is not None, "over fp32's samples of this part"

    before = entries_of(folder)
    second = refreshed(folder, *minutes)
    assert second.returncode == 0, second.stdout
    assert "1 passed, 2 skipped" in second.stdout
    assert "recorded before, for the same reason and with the same software" in second.stdout
    after = entries_of(folder)
    assert after.keys() == {"fp32", "sdpa", "bf16"}
    assert {name: after[name] for name in before} == before

    third = refreshed(folder, *minutes)
    assert third.returncode == 0, third.stdout
    assert "3 skipped" in third.stdout


def test_without_time_for_one_scenario_a_refresh_fails_and_says_so(tmp_path: Path) -> None:
    result = refreshed(tmp_path, "--perf-minutes", "0.00001")
    assert result.returncode == pytest.ExitCode.TESTS_FAILED, result.stdout
    assert "No baseline was recorded: --perf-minutes 1e-05 was over before a scenario could" in (
        result.stdout
    )
    assert entries_of(tmp_path) == {}


def test_without_time_for_all_the_same_command_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    def allows(self: TimeLimit, workload: str) -> bool:
        begun.append(workload)
        return len(begun) == 1

    monkeypatch.setattr(TimeLimit, "allows", allows)
    result = refreshed(tmp_path, "--perf-minutes", "9")
    assert result.returncode == 0, result.stdout
    assert "Time ran out: repeat the command to continue." in result.stdout
    assert len(entries_of(tmp_path)) == 1


def test_several_workers_at_once_are_refused() -> None:
    option = SimpleNamespace(dist="loadgroup", numprocesses=2)
    invoked = SimpleNamespace(dir=REPOSITORY)
    config = SimpleNamespace(
        option=option,
        args=["perf_tests"],
        invocation_params=invoked,
        getoption=lambda _: "simulated",
    )
    check_workers(cast(Any, config), Settings(device="simulated"))
    with pytest.raises(pytest.UsageError, match="-n is refused with --perf-minutes"):
        check_workers(cast(Any, config), Settings(device="simulated", minutes=9.0))


def test_nothing_is_begun_that_would_not_be_done_if_it_took_as_long_as_its_like() -> None:
    now_s = [0.0]
    limit = TimeLimit(100.0, clock=lambda: now_s[0])
    for took_s in (60.0, 20.0):
        assert limit.allows("sd15")
        with limit.spending("sd15"):
            now_s[0] += took_s / 2
    assert limit.allows("sd15")
    now_s[0] = 70.0
    assert not limit.allows("sd15")
    assert limit.allows("storybook")
    now_s[0] = 100.0
    assert not limit.allows("storybook")


SOFTWARE, HERE, ELSEWHERE = {"torch": "2.13"}, {"processor": "A"}, {"processor": "B"}


@pytest.mark.parametrize(
    ("changes", "session", "timed", "expected"),
    [
        ({}, {}, True, True),
        ({"reason": "another"}, {}, True, False),
        ({"software": {"torch": "2.12"}}, {}, True, False),
        ({}, {"software": {"torch": "2.12"}}, True, False),
        ({}, {"hardware": ELSEWHERE}, True, False),
        ({}, {"hardware": ELSEWHERE}, False, True),
    ],
)
def test_which_entry_is_of_this_refresh(
    changes: dict[str, Any], session: dict[str, Any], timed: bool, expected: bool
) -> None:
    made = latency(**{"software": SOFTWARE, "hardware": HERE, **session})
    recorded = replace(entry().recorded, **{"reason": "why", "software": SOFTWARE, **changes})
    run = RunRecord(software=dict(SOFTWARE), hardware=dict(HERE))
    stored = entry(recorded=recorded, latency=(made,))
    assert is_of_this_refresh(stored, Settings(reason="why"), run, timed=timed) is expected


def test_the_table_of_the_docs_comes_first_and_the_reference_before_it() -> None:
    matrix = scenarios(["storybook", "sd15", "sdxl"])
    items = [SimpleNamespace(callspec=SimpleNamespace(params={"scenario": one})) for one in matrix]
    ordered = sorted(cast(Any, items), key=value_of(matrix))
    named = [item.callspec.params["scenario"] for item in ordered]
    assert list(dict.fromkeys(one.workload.name for one in named)) == ["sd15", "sdxl", "storybook"]
    assert named[0].id == "sd15-fp32"
    timed = [bool(one.technique.documented_speedup) for one in named if one.workload.name == "sd15"]
    assert timed[1:] == sorted(timed[1:], reverse=True)
