"""Bad input gets one sentence that names the thing and the remedy, and nothing stored is lost."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.settings import REPOSITORY
from fixtures.suite.session import PerfSession
from fixtures.worker.protocol import Facts
from tests.suite.test_judged import run
from tests.support import fake_bench
from tests.support.fake_device import FakeDevice
from tests.support.running import run_here, run_suite
from tests.test_settings import given_options

QUICK = "[storybook-fp32] and test_activation"


def test_an_option_that_a_run_cannot_have_ends_it_with_a_sentence() -> None:
    result = run_here("-k", QUICK, "-n", "2")
    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    assert "-n is refused on the CPU" in result.stderr + result.stdout
    assert "Traceback" not in result.stderr + result.stdout


def begin(config: Any, device: FakeDevice | None = None) -> None:
    """Begin a run, and end what measures; a device that is given is not opened."""
    session = PerfSession.of(config)
    if device is not None:
        session.device = Facts.of(device)
    with contextlib.closing(session.worker):
        session.check()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"perf_device": "cuda", "perf_workload": ["storybook"]}, "choose --perf-device cpu"),
        ({"perf_workload": ["sd99"]}, "--perf-workload: Workload 'sd99' is unknown; known:"),
        ({"perf_workload": ["FLX"]}, "Workload 'FLX' is unknown; did you mean flux?"),
        (
            {"perf_device": "simulated", "perf_profile": "rtx4090"},
            "--perf-profile: there is no simulated device 'rtx4090'; did you mean rtx-4090?",
        ),
        ({"perf_weights": "my/pipeline"}, "--perf-weights needs --perf-baselines DIR"),
        ({"perf_weights": "nowhere"}, "'nowhere' is neither a folder here nor a hub id; give"),
        ({"perf_catalogue": ["mine.py"]}, "--perf-catalogue needs --perf-baselines DIR"),
        (
            {"perf_catalogue": ["mine.py"], "perf_baselines": "mine"},
            "mine.py is not a Python module; give one.",
        ),
        ({"perf_device": "cpu", "perf_expect_device": "h200"}, "the device found is 'cpu'"),
    ],
    ids=str,
)
def test_what_a_run_cannot_begin_with_is_one_sentence(given: dict[str, Any], sentence: str) -> None:
    """Values that are none at all are refused in `tests/test_settings.py`."""
    config: Any = SimpleNamespace(getoption=given_options(**given))
    with pytest.raises(pytest.UsageError) as caught:
        begin(config)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_tests_of_another_kind_of_run_are_not_counted() -> None:
    result = run_suite(*fake_bench.OPTIONS, "-k", "storybook-sdap", "--collect-only")
    assert re.search(r"no tests collected \(\d+ deselected\)", result.stdout)
    result = run_suite(*fake_bench.OPTIONS, "-k", QUICK, "--collect-only")
    assert re.search(r"1/\d+ tests collected", result.stdout)
    everything = run_suite(*fake_bench.OPTIONS, "--collect-only", "-q").stdout
    assert f"\n{everything.count('::')} tests collected" in everything
    assert "test_refresh" not in everything


# Baselines


def _truncate(path: Path) -> None:
    path.write_text(path.read_text()[:1000])


def _rename_the_entry(path: Path) -> None:
    stored = json.loads(path.read_text())
    stored["scenarios"]["no_such_technique"] = stored["scenarios"].pop("fp32")
    path.write_text(json.dumps(stored))


def _add_a_foreign_file(path: Path) -> None:
    path.with_name("notes.json").write_text("{}")


@pytest.mark.parametrize(
    ("corrupt", "sentences"),
    [
        (_truncate, ["is not JSON"]),
        (_rename_the_entry, ["no entry in", "no scenario has the entry 'no_such_technique'"]),
        (_add_a_foreign_file, ["notes.json"]),
    ],
)
def test_a_corrupt_baseline_fails_and_says_what_to_do(
    recorded: Path, tmp_path: Path, corrupt: Callable[[Path], None], sentences: list[str]
) -> None:
    baselines = shutil.copytree(recorded, tmp_path / "baselines")
    corrupt(baselines / fake_bench.KEY / "storybook.json")
    expression = "test_entry_has_a_scenario or (test_scenario_has and [storybook-fp32])"
    result = run(baselines, "-k", expression, "--show-capture=no")
    assert result.returncode == pytest.ExitCode.TESTS_FAILED, result.stdout
    for sentence in sentences:
        assert sentence in result.stdout
    for noise in ("ERROR", "Traceback", "During handling"):
        assert noise not in result.stdout


def test_a_path_in_another_copy_of_the_suite_is_a_path_like_any_other(tmp_path: Path) -> None:
    """pytest loads the conftest.py above every word that is a path, options' values too."""
    shutil.copy(REPOSITORY / "conftest.py", tmp_path)
    other = tmp_path / "baselines"
    other.mkdir()
    result = run_here("--collect-only", "-q", "-k", QUICK, "--perf-baselines", str(other))
    assert result.returncode == pytest.ExitCode.OK, result.stdout + result.stderr


# Weights


@pytest.mark.parametrize(
    ("index", "sentence"),
    [
        (None, "is not a pipeline folder: it has no model_index.json"),
        ("not JSON", "has an unreadable model_index.json"),
        (
            '{"_class_name": "StableDiffusionXLPipeline"}',
            "holds 'StableDiffusionXLPipeline', not a StableDiffusionPipeline; run it with "
            "--perf-workload sdxl",
        ),
        (
            '{"_class_name": "AuraFlowPipeline"}',
            "run it with --perf-device simulated without --perf-workload, which runs any pipeline",
        ),
        ('{"_class_name": "StableDiffusionPipeline"}', "has no vae in model_index.json"),
    ],
    ids=["no index", "no JSON", "another workload's", "no workload's", "a part of one"],
)
def test_weights_of_another_pipeline_are_refused(
    tmp_path: Path, index: str | None, sentence: str
) -> None:
    if index is not None:
        (tmp_path / "model_index.json").write_text(index)
    given = {"perf_weights": str(tmp_path), "perf_baselines": str(tmp_path)}
    config: Any = SimpleNamespace(getoption=given_options(perf_device="cpu", **given))
    with pytest.raises(pytest.UsageError) as caught:
        begin(config, FakeDevice())
    assert str(caught.value).startswith(f"{str(tmp_path)!r} ")
    assert sentence in str(caught.value)
