"""Compiled code of a run: what is selected, stored, kept, judged, and compared on request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from fixtures.commands.bisect.__main__ import parsed as bisected
from fixtures.commands.compare.command_line import counting, parsed
from fixtures.commands.compare.comparing import METRICS
from fixtures.records.baseline_store import BaselineStore
from fixtures.records.counts import FIRST, GRAPHS, GUARDS, RUNS, Counts, Number, Row
from fixtures.scenarios import Scenario
from fixtures.settings import Settings, SettingsError
from fixtures.suite.selecting import compiles_twins, is_asked_for
from fixtures.techniques import CATALOGUE
from fixtures.workloads.twins import TWINS, twin_of
from tests.support import fake_bench
from tests.support.running import run_here, run_suite
from tests.support.runs import entry
from tests.support.scenarios import find_scenario
from tests.test_settings import given_options

COMPILED = "[storybook-torch_compile]"
ASKED = ("-m", "compilation", "-k", COMPILED)
RECORD = ("--perf-update-baselines", "--perf-reason", "test")
ROWS = {Row(GRAPHS): Number(2), Row(RUNS, FIRST): Number(14)}
STORED = Counts(ROWS, torch="2.13")
GUARD = {Row(GUARDS, FIRST, "0/1: a guard"): Number(1)}
MORE = Counts({**ROWS, Row(GRAPHS): Number(3), **GUARD}, torch="2.13")
SAYS = "graphs 2 -> 3 (+1, +50.0 %): 0/1: a guard +1 (first call)"


def run(folder: Path, *options: str, made: Sequence[Counts] = ()) -> str:
    """What a fake run against the baselines in the folder prints, where this is counted."""
    counted = mock.Mock(side_effect=made)
    with mock.patch.object(fake_bench, "compiled", counted):
        result = run_here(*fake_bench.OPTIONS, "--perf-baselines", str(folder), "-rfs", *options)
    assert counted.call_count == len(made)
    return " ".join(result.stdout.split())


def test_counts_are_stored_kept_and_judged(tmp_path: Path) -> None:
    run(tmp_path, *RECORD, "-k", COMPILED)
    said = run(tmp_path, "-k", COMPILED)
    assert "not judged: the baseline holds none; store it with:" in said
    said = run(tmp_path, *RECORD, *ASKED, made=[STORED, MORE])
    assert f"{GUARDS}, {GRAPHS}: two counts of compiled code differ; nothing is recorded" in said
    said = run(tmp_path, *RECORD, *ASKED, made=[STORED, STORED])
    assert "compilation none -> 2" in said
    before = BaselineStore(tmp_path).entry(fake_bench.KEY, "storybook", "torch_compile")
    run(tmp_path, *RECORD, "-k", COMPILED)  # a refresh of the rest keeps them
    after = BaselineStore(tmp_path).entry(fake_bench.KEY, "storybook", "torch_compile")
    assert before
    assert after
    assert (after.compiled, after.counts) == (before.compiled, before.counts)
    assert after.counts.kinds > {GRAPHS}
    assert "1 passed" in run(tmp_path, *ASKED, made=[STORED])
    failed = run(tmp_path, *ASKED, made=[MORE])
    assert "FAILED perf_tests/test_compilation.py::test_compilation[storybook-torch_com" in failed
    assert SAYS in failed
    asked = f'--perf-baselines {tmp_path} -m compilation -k "{COMPILED}" --perf-reason "WHY"'
    assert asked in failed
    # In a run of everything it is judged, too.
    assert SAYS in run(tmp_path, "-k", COMPILED, made=[MORE])


def test_what_is_stored_of_a_twin_is_what_is_counted(tmp_path: Path) -> None:
    twin = ("--perf-workload", "flux-twin", "-m", "compilation", "--perf-baselines", str(tmp_path))
    result = run_suite(*fake_bench.PLUGIN, *twin, "--collect-only", "-q")
    tests = [line for line in result.stdout.splitlines() if "::" in line]
    assert "perf_tests/test_compilation.py::test_compilation[flux-twin-torch_compile]" in tests
    assert all("test_compilation[flux-twin-" in test for test in tests)


ON_REQUEST, TWIN, MARKED, COMPILES = "on request", "twin", "marked", "compiles"


@pytest.mark.parametrize(
    ("technique", "given", "keyword", "asked"),
    [
        ("torch_compile", {COMPILES}, "", True),
        ("torch_compile", {ON_REQUEST, COMPILES}, "", False),
        ("torch_compile", {ON_REQUEST, MARKED, COMPILES}, "", True),
        ("torch_compile", {ON_REQUEST, MARKED}, "", False),
        ("torch_compile", {ON_REQUEST}, "x-torch_compile]", True),
        ("torch_compile", {TWIN, MARKED, COMPILES}, "", True),
        ("torch_compile", {TWIN, MARKED}, "torch_compile", False),
        ("fp32", {COMPILES}, "", False),
        ("fp32", set(), "", True),
    ],
)
def test_what_takes_minutes_is_asked_for_by_name(
    technique: str, given: set[str], keyword: str, asked: bool
) -> None:
    workload = twin_of("sdxl") if TWIN in given else find_scenario("storybook", "fp32").workload
    scenario = Scenario(workload, replace(CATALOGUE[technique], on_request=ON_REQUEST in given))
    settings = Settings(compilation=MARKED in given)
    assert is_asked_for(scenario, settings, keyword, compiles=COMPILES in given) is asked


@pytest.mark.parametrize(
    ("markers", "workloads", "alone", "twins"),
    [
        ("compilation", (), True, True),
        (" compilation ", ("storybook",), True, False),
        ("not compilation", (), False, False),
        ("", ("flux-twin",), False, False),
    ],
)
def test_compiled_code_is_counted_alone_where_nothing_else_is_marked(
    markers: str, workloads: tuple[str, ...], alone: bool, twins: bool
) -> None:
    settings = Settings.parse(given_options(markexpr=markers, perf_workload=list(workloads)))
    assert (settings.compilation, compiles_twins(settings)) == (alone, twins)


@pytest.mark.parametrize("markers", ["compilation or x", "(compilation)", "compilation and x"])
def test_beside_another_marker_it_is_refused(markers: str) -> None:
    with pytest.raises(SettingsError, match="'compilation' cannot be combined with other markers"):
        Settings.parse(given_options(markexpr=markers))


def test_commands_compare_it_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert "compilation" not in METRICS
    sides = ["--base", "diffusers==0.41.0", "--head", "diffusers==0.42.1"]
    chosen = parsed([*sides, "--metric", "compilation", "-k", "flux"], None)
    assert (chosen.markers, chosen.perf_device) == ("compilation", "cpu")
    assert chosen.perf_catalogue == [str(TWINS)]
    assert counting(Settings(), ["compilation"]) == Settings(compilation=True)
    for beside, refusal in (
        (["--metric", "latency"], "--metric compilation cannot be combined with other metrics"),
        (["-m", "caching"], "is counted on the CPU; select with -k only"),
        (["--perf-device", "simulated"], "is counted on the CPU; select with -k only"),
    ):
        with pytest.raises(SystemExit):
            parsed([*sides, "--metric", "compilation", *beside], None)
        assert refusal in capsys.readouterr().err
    ends = ["--package", "diffusers", "--good", "0.41.0", "--bad", "0.42.1"]
    named = ["--metric", "compilation", "--perf-device", "cpu"]
    assert bisected([*ends, *named]).markers == "compilation"
    assert parsed([*sides, *named], None).markers == "compilation"


def test_an_entry_of_a_twin_is_no_orphan(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    for technique in ("torch_compile", "gone"):
        store.stage(fake_bench.KEY, "flux-twin", technique, entry())
    store.commit()
    said = run(tmp_path, "-k", "test_entry_has_a_scenario")
    assert "no scenario has the entry 'gone' in" in said
    assert "is the baseline of no workload" not in said
