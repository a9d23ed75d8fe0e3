"""Bad input gets one sentence that names the thing and the remedy, and nothing stored is lost."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.running import REPOSITORY, run_suite

QUICK = "[storybook-fp32] and test_peak_memory"
STORED = REPOSITORY / "baselines" / "cpu"


@pytest.fixture
def baselines(tmp_path: Path) -> Path:
    """A copy of the stored baselines, to spoil."""
    shutil.copytree(STORED.parent, tmp_path / "baselines")
    return tmp_path / "baselines"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--perf-device", "tpu"],
            "--perf-device 'tpu' is unknown; it takes auto, cpu, cuda, simulated.",
        ),
        (["--perf-profile", "two words"], "--perf-profile 'two words' is no name of an accel"),
        (["--perf-device", "cuda", "--perf-workload", "storybook"], "CUDA"),
        (["--perf-workload", "sd99"], "--perf-workload: Workload 'sd99' is unknown; known are"),
        (["--perf-budget", "soon"], "--perf-budget 'soon' is not a number of seconds"),
        (["--perf-update-baselines"], "--perf-update-baselines needs --perf-reason TEXT"),
        (["--perf-expect-device", "nvidia-h200"], "the device found is 'cpu'"),
        (["-n", "2"], "-n is refused on the CPU"),
        (["--tx", "2*popen", "--dist", "load"], "-n is refused on the CPU"),
        (["--perf-baselines", "README.md"], "is a file; it takes a folder"),
    ],
)
def test_an_unusable_option_ends_the_run_with_a_sentence(
    arguments: list[str], sentence: str
) -> None:
    result = run_suite("-k", QUICK, *arguments)
    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    assert sentence in result.stderr + result.stdout
    assert "Traceback" not in result.stderr + result.stdout


def _spoil_json(path: Path, change: str) -> None:
    stored = json.loads(path.read_text())
    entry = stored["scenarios"]["fp32"]
    if change == "unit":
        entry["latency_s"] = entry.pop("latency_ms")
    elif change == "schema":
        stored["schema"] = 99
    elif change == "device":
        stored["device"]["key"] = "nvidia-h200"
    elif change == "entry":
        del stored["scenarios"]["fp32"]
    elif change == "orphan":
        stored["scenarios"]["no_such_technique"] = entry
    path.write_text(json.dumps(stored))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("missing", "no entry in"),
        ("empty", "is empty; restore it with 'git checkout -- "),
        ("truncated", "is not JSON"),
        ("schema", "has schema 99, this suite reads 1"),
        ("unit", "at scenarios.fp32: "),
        ("device", "was recorded on device 'nvidia-h200', not on 'cpu'"),
        ("entry", "no entry in"),
        ("orphan", "no scenario has the entry 'no_such_technique'"),
    ],
)
def test_a_spoilt_baseline_is_red_and_says_how_to_mend_it(
    baselines: Path, change: str, sentence: str
) -> None:
    path = baselines / "cpu" / "storybook.json"
    if change == "missing":
        path.unlink()
    elif change == "empty":
        path.write_text("")
    elif change == "truncated":
        path.write_text(path.read_text()[:1000])
    else:
        _spoil_json(path, change)
    expression = "test_entry_has_a_scenario or (test_scenario_has and [storybook-fp32])"
    result = run_suite("-k", expression, "--perf-baselines", str(baselines), "--show-capture=no")
    assert result.returncode == pytest.ExitCode.TESTS_FAILED, result.stdout
    assert sentence in result.stdout
    assert "Traceback" not in result.stdout


@pytest.mark.parametrize("content", ["nothing", "a file"])
def test_a_folder_that_is_no_pipeline_is_broken_with_a_sentence(
    tmp_path: Path, content: str
) -> None:
    if content == "a file":
        (tmp_path / "model_index.json").write_text("not JSON")
    result = run_suite("-k", QUICK, "--perf-weights", str(tmp_path), "--show-capture=no")
    assert result.returncode == pytest.ExitCode.TESTS_FAILED
    assert str(tmp_path) in result.stdout
    assert "Traceback" not in result.stdout


def test_a_pipeline_folder_of_one_s_own_is_measured(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(REPOSITORY / "fixtures/workloads/storybook/pipeline", folder)
    result = run_suite("-k", QUICK, "--perf-weights", str(folder))
    assert result.returncode == pytest.ExitCode.OK, result.stdout


def test_a_path_in_another_copy_of_the_suite_is_a_sentence(tmp_path: Path) -> None:
    shutil.copy(REPOSITORY / "conftest.py", tmp_path)
    other = tmp_path / "baselines"
    other.mkdir()
    result = run_suite("--collect-only", "-q", "--perf-baselines", str(other))
    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    assert "lies in another copy of this suite" in result.stderr
    assert "Traceback" not in result.stderr
    assert run_suite("--collect-only", "-q", f"--perf-baselines={other}").returncode == 0


def test_a_refresh_that_is_interrupted_leaves_the_file_unchanged(baselines: Path) -> None:
    path = baselines / "cpu" / "storybook.json"
    before = path.read_bytes()
    command = [
        *(sys.executable, "-m", "pytest", "perf_tests", "--perf-update-baselines", "-v"),
        *("--perf-reason", "interrupted", "-k", "[storybook-fp32] or [storybook-bf16]"),
        *("--perf-baselines", str(baselines)),
        # Imports first: interrupted in one, pytest may end with a failure of its own.
        *("-p", "fixtures.preloaded"),
    ]
    with subprocess.Popen(
        command,
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # A shell starts what runs in its background with SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as run:
        assert run.stdout is not None
        next(line for line in run.stdout if "collected" in line)
        time.sleep(3)  # into the measuring
        run.send_signal(signal.SIGINT)
        output = ""
        while run.poll() is None:
            # Python drops an interrupt that arrives within a `__del__`: ask again, as people do.
            with suppress(subprocess.TimeoutExpired):
                output = run.communicate(timeout=20)[0]
                break
            run.send_signal(signal.SIGINT)
    # pytest ends with its code for an interrupt, or the interpreter with the signal itself.
    assert run.returncode in (pytest.ExitCode.INTERRUPTED, -signal.SIGINT), output
    assert "No baseline was written" in output
    assert path.read_bytes() == before
    assert sorted(p.name for p in path.parent.iterdir()) == sorted(p.name for p in STORED.iterdir())
