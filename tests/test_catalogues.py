"""Techniques and workloads of one's own: loaded in every process, or refused in a sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from fixtures.catalogue.matrix import scenarios
from fixtures.catalogue.own import load, loaded, store_of
from fixtures.catalogue.techniques import CATALOGUE
from fixtures.catalogue.workloads import WORKLOADS, default_workloads
from fixtures.commands import calibrate
from fixtures.commands.bisect import __main__ as bisect
from fixtures.commands.compare import __main__ as compare
from fixtures.commands.compare.command_line import selected
from fixtures.commands.compare.side import Side, failure_of
from fixtures.commands.fit import __main__ as fit
from fixtures.commands.fit.configurations import single_techniques
from fixtures.devices.kinds import KINDS
from fixtures.records.outcome import Outcome
from fixtures.settings import BASELINES, Settings
from fixtures.worker.client import Worker
from tests.support import fake_bench
from tests.support.own_catalogue import BOTH, TECHNIQUE, WORKLOAD, nothing_kept, refusal, written
from tests.support.running import run_suite
from tests.support.scenarios import find_scenario

OWN = ("storybook-tiny", "warmed")


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with nothing_kept(monkeypatch):
        yield


# What is loaded


def test_what_a_file_declares_is_found_beside_ours_and_runs_by_name_alone(tmp_path: Path) -> None:
    path = written(tmp_path)
    load([path])
    ids = {scenario.id for scenario in scenarios(["storybook", "storybook-tiny"])}
    assert {"storybook-warmed", "storybook-tiny-warmed", "storybook-tiny-fp32"} < ids
    assert CATALOGUE["warmed"].family == "mine"
    assert loaded() == (str(path),)
    assert all("storybook-tiny" not in names for names in map(default_workloads, KINDS))
    assert CATALOGUE["warmed"] in single_techniques(WORKLOADS["storybook-tiny"])


def test_a_catalogue_is_loaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path)
    monkeypatch.chdir(tmp_path)
    load([path, path.name, f"../{tmp_path.name}/{path.name}"])
    load(loaded())
    assert loaded() == (str(path),)


def test_a_file_imports_what_lies_beside_it(tmp_path: Path) -> None:
    written(tmp_path / "own_package", "", "__init__.py")
    written(tmp_path / "own_package", WORKLOAD, "own_workloads.py")
    written(tmp_path, "NAME = 'besides'\n", "own_names.py")
    text = f"import own_names\nimport own_package.own_workloads\n{TECHNIQUE}"
    load([written(tmp_path, text, "own_file.py")])
    assert "warmed" in CATALOGUE.techniques
    assert "storybook-tiny" in WORKLOADS


def test_a_source_can_be_any_callable(tmp_path: Path) -> None:
    text = WORKLOAD.partition("@workload")[0] + (
        "workload('storybook-called', kind='single', call=CALL)(source)\n"
    )
    load([written(tmp_path, text)])
    assert WORKLOADS["storybook-called"].source is WORKLOADS["storybook"].source


# What is refused


def test_what_is_no_catalogue_is_refused(tmp_path: Path) -> None:
    paths = [written(tmp_path, name=name) for name in ("notes.md", "own.techniques.py")]
    for path in (tmp_path / "gone.py", tmp_path, *paths):
        assert refusal(path) == f"--perf-catalogue {path} is not a Python module; give one."
    empty = written(tmp_path, "from fixtures.catalogue.techniques.registry import technique\n")
    assert f"{empty} declares no technique and no workload; decorate one" in refusal(empty)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("import nothing_of_this_name\n", 1, "raises ModuleNotFoundError: No module named"),
        ("\n\nraise RuntimeError('two\\nlines')\n", 3, "raises RuntimeError: two lines; fix the"),
        ("def f(:\n", 1, "raises SyntaxError: "),
        (TECHNIQUE.replace("warmed", "bf16"), 5, "technique 'bf16' is declared already; give the"),
        (TECHNIQUE.replace("warmed", "Warmed"), 5, "'Warmed' cannot name a technique or its fam"),
        (TECHNIQUE.replace('"mine"', '"mine all"'), 5, "'mine all' cannot name a technique or its"),
        (TECHNIQUE.replace("yield", "return"), 5, "'warmed' must be a generator function that"),
        (TECHNIQUE.replace('"""', "#"), 5, "technique 'warmed' has no docstring, which is its"),
        (TECHNIQUE.replace("0.99", "{'sd15': 0.9}"), 5, "has no min_ssim for other workloads; add"),
        (WORKLOAD.replace("-tiny", ""), 9, "workload 'storybook' is declared already; take"),
        (WORKLOAD.replace("-tiny", "_tiny"), 9, "'storybook_tiny' cannot name a workload; take"),
    ],
)
def test_a_file_that_cannot_be_imported_is_refused_with_the_line(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    path = written(tmp_path, text)
    sentence = refusal(path)
    where, _, rest = sentence.partition(", line ")
    assert where == f"--perf-catalogue {path}"
    assert abs(int(re.match(r"\d+", rest)[0]) - line) <= 7  # type: ignore[index]
    assert words in rest


def test_the_file_beside_it_that_fails_is_named(tmp_path: Path) -> None:
    wrong = written(tmp_path, "\n1 / 0\n", "own_names.py")
    sentence = refusal(written(tmp_path, "import own_names\n"))
    assert sentence.startswith(f"--perf-catalogue {wrong}, line 2 raises ZeroDivisionError: ")


@pytest.mark.parametrize("name", ["json.py", "fixtures.py", "__main__.py"])
def test_the_name_of_another_module_is_refused(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, name=name)
    assert f"{path} has the name of another module (" in refusal(path)


def test_two_catalogues_of_one_name_or_with_one_id_are_refused(tmp_path: Path) -> None:
    first, other = written(tmp_path / "a"), written(tmp_path / "b")
    assert f"{other} has the name of another module ({first}); rename it." in refusal(first, other)
    third = written(tmp_path / "c", name="own_others.py")
    assert f"{third}, line " in refusal(third)


# Where the baselines lie


def test_ours_are_judged_by_ours_and_a_refresh_stands_on_its_own_folder(tmp_path: Path) -> None:
    own = Settings(catalogues=(tmp_path / "mine.py",), baselines=tmp_path)
    assert store_of(own).beneath == store_of(Settings())
    assert store_of(own).entry("simulated", "storybook", "bf16") is not None
    assert store_of(own).path("simulated", "storybook").is_relative_to(tmp_path)
    refresh = Settings(
        catalogues=own.catalogues, baselines=tmp_path, update_baselines=True, reason="new"
    )
    for strict in (refresh, Settings(baselines=tmp_path)):
        assert store_of(strict).entry("simulated", "storybook", "bf16") is None
    assert store_of(Settings()).folder == BASELINES


# Every command, and every process that it starts


def arguments_of(*own: str) -> dict[str, tuple[Callable[[list[str]], int], list[str]]]:
    sides = ["--base", "diffusers==0.36.0", "--head", "diffusers==0.42.1"]
    ends = ["--package", "diffusers", "--good", "0.36.0", "--bad", "0.42.1", "--metric", "counts"]
    return {
        "calibrate": (calibrate.main, ["storybook", *own]),
        "fit": (fit.main, ["storybook", "--card", "rtx-4090", *own]),
        "compare": (compare.main, [*sides, *own]),
        "bisect": (bisect.main, [*ends, *own]),
    }


@pytest.mark.parametrize("command", arguments_of())
def test_every_command_loads_what_it_is_given(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, "raise RuntimeError('it was imported')\n")
    main, arguments = arguments_of(f"--perf-catalogue={path}")[command]
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert f"--perf-catalogue {path}, line 1 raises RuntimeError: it was imported" in said
    assert said.count("\n") == 1


def run_own(path: Path, *options: str) -> str:
    more = (f"--perf-catalogue={path}", f"--perf-baselines={path.parent / 'baselines'}")
    done = run_suite(*fake_bench.OPTIONS, "-k", "warmed and not test_latency", *more, *options)
    assert "Traceback" not in done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.long
def test_a_run_fails_without_a_baseline_records_one_and_is_judged_in_workers_too(
    tmp_path: Path,
) -> None:
    path = written(tmp_path)
    command = f"--perf-catalogue={path} --perf-baselines {tmp_path / 'baselines'} --perf-reason"
    assert command in run_own(path, "-rs")
    recorded = run_own(path, "--perf-update-baselines", "--perf-reason=new")
    assert f"Baseline written: {tmp_path / 'baselines'}" in recorded
    assert "1 judged: 1 passed, 0 failed" in run_own(path)
    assert "1 judged: 1 passed, 0 failed" in run_own(path, "-n", "2")
    left = run_suite(
        *fake_bench.OPTIONS, "-k", "has_a_scenario", f"--perf-baselines={tmp_path / 'baselines'}"
    )
    assert "delete it, or name what declares it with --perf-catalogue" in left.stdout


def test_a_family_is_a_marker_and_no_other_one(tmp_path: Path) -> None:
    said = run_own(written(tmp_path), "--collect-only", "-q", "-m", "mine")
    assert set(re.findall(r"\[(\S+)\]", said)) == {"storybook-warmed"}
    path = written(tmp_path, BOTH.replace('"mine"', '"skip"'))
    words = "technique 'warmed' has the family 'skip', which is a marker of pytest's or the"
    assert words in run_own(path, "--collect-only")


@pytest.mark.long
def test_a_comparison_selects_and_its_sides_run_what_is_loaded(tmp_path: Path) -> None:
    path = written(tmp_path)
    settings = Settings(device="simulated", workloads=("storybook-tiny",), catalogues=(path,))
    load(settings.catalogues)
    [scenario] = selected(settings, "warmed", "")
    assert (scenario.workload.name, scenario.technique.id) == OWN
    with closing(Worker(settings)) as worker:
        recording = Side(worker).recording(scenario)
        assert failure_of(recording.record) is None
        assert recording.record.peak_bytes


def test_a_side_that_cannot_import_a_catalogue_says_so(tmp_path: Path) -> None:
    path = written(tmp_path)
    load([path])
    path.write_text("import nothing_of_this_name\n")
    settings = Settings(device="cpu", catalogues=(path,))
    with closing(Worker(settings)) as worker:
        failure = failure_of(Side(worker).recording(find_scenario(*OWN)).record)
    assert failure is not None
    assert failure.outcome is Outcome.BROKEN
    sentence = f"--perf-catalogue {path}, line 1 raises ModuleNotFoundError"
    assert failure.text.startswith(sentence)
