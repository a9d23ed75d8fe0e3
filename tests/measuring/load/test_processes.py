"""The process that loads: what an import costs, whose scenario it is, and how it fails."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from fixtures.measuring.load import process, processes
from fixtures.measuring.load.process import Task, Variant, measured
from fixtures.measuring.load.processes import loading_of, put_load, unmeasured
from fixtures.metrics.load import COUNTED, METRIC, TIMED
from fixtures.records.load import IMPORT_CPU, IMPORT_MODULES, IMPORT_WAITING, Load
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.scenarios import Scenario, find_scenario
from tests.support.loads import record, sides

STORYBOOK = find_scenario("storybook", "fp32")
MORE = 40


class Pipeline:
    """Loads nothing."""

    @classmethod
    def from_pretrained(cls, folder: str, **options: Any) -> Pipeline:
        return cls()


@pytest.fixture
def restored() -> Iterator[None]:
    """What the process does to itself, which nothing else is to notice here."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
    gc.unfreeze()


@pytest.fixture
def imports(
    restored: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[Callable[[], None]], Load]:
    """Measures a pipeline whose import does this besides."""

    def measure(more: Callable[[], None]) -> Load:
        def class_of(name: str) -> type[Pipeline]:
            more()
            return Pipeline

        monkeypatch.setattr(process, "_class_of", class_of)
        variant = Variant("fp32", str(tmp_path), "float32")
        found = measured(Task("Pipeline", (variant,), "", (), counts=False, output=""))
        return Load(found.counted, {name: (figure,) for name, figure in found.timed.items()})

    return measure


def import_more(folder: Path) -> None:
    for number in range(MORE):
        (folder / f"made_up_{number}.py").touch()
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    for number in range(MORE):
        importlib.import_module(f"made_up_{number}")
        del sys.modules[f"made_up_{number}"]
    sys.modules.update(dict.fromkeys([f"made_up_{number}" for number in range(MORE)], sys))
    sys.path.remove(str(folder))


@dataclass
class Clock:
    """Both clocks of a process, which go by themselves nowhere."""

    cpu_s: float = 0.0
    waited_s: float = 0.0

    def process_time(self) -> float:
        return self.cpu_s

    def perf_counter(self) -> float:
        return self.cpu_s + self.waited_s

    def compute(self) -> None:
        self.cpu_s += 0.5

    def wait(self) -> None:
        self.waited_s += 2.0


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("none", set()),
        ("modules", {IMPORT_MODULES}),
        ("computes", {IMPORT_CPU}),
        ("waits", {IMPORT_WAITING}),
    ],
)
def test_what_an_import_does_besides_is_found(
    imports: Callable[[Callable[[], None]], Load],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    fault: str,
    found: set[str],
) -> None:
    clock = Clock()
    monkeypatch.setattr(process, "time", clock)
    faults: dict[str, Callable[[], None]] = {
        "none": lambda: None,
        "modules": lambda: import_more(tmp_path),
        "computes": clock.compute,
        "waits": clock.wait,
    }
    base, head = (imports(faults[name]) for name in ("none", fault))
    for name in [name for name in sys.modules if name.startswith("made_up_")]:
        del sys.modules[name]
    figures = METRIC.compare(sides(base, head))
    failed = {one.verdict.metric for one in figures if one.verdict.outcome.fails(strict=False)}
    assert failed == found


def test_it_is_measured_with_the_first_technique_of_what_has_a_folder(tmp_path: Path) -> None:
    assert unmeasured(STORYBOOK) is None
    assert unmeasured(find_scenario("storybook", "sdpa")) == "it is measured with storybook-fp32"
    assert "there is no folder to load" in (unmeasured(find_scenario("sd15", "fp32")) or "")
    assert unmeasured(find_scenario("sd15", "fp32", str(tmp_path))) is None
    without_fp32 = find_scenario("flux2", "bf16", str(tmp_path))
    assert unmeasured(without_fp32) is None


def test_a_folder_of_one_s_own_that_could_run_code_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model_index.json").write_text('{"_class_name": "Foreign"}')
    with pytest.raises(ScenarioError, match="holds 'Foreign', not a StableDiffusionPipeline"):
        loading_of(find_scenario("sd15", "fp32", str(tmp_path)))


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise ImportError('no protobuf')", "loading raised ImportError: no protobuf"),
        ("import os; os.kill(os.getpid(), 9)", "loading ended with SIGKILL: no message"),
    ],
)
def test_a_process_that_fails_is_the_reason(
    code: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(scenario: Scenario) -> Load:
        return loading_of(scenario, (sys.executable, "-c", code))

    with pytest.raises(ScenarioError) as caught:
        fails(STORYBOOK)
    assert (caught.value.outcome, caught.value.reason) == (Outcome.BROKEN, reason)
    monkeypatch.setattr(processes, "loading_of", fails)
    failed = record(None)
    put_load(failed, STORYBOOK)
    assert (failed.load, failed.not_loaded) == (None, reason)


@pytest.mark.long
def test_real_processes_measure_everything_and_count_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def seeded(seed: str, number: int) -> Load:
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        monkeypatch.setattr(processes, "PROCESSES", number)
        return loading_of(STORYBOOK)

    first, second = seeded("0", 2), seeded("1", 1)
    assert second.counted == first.counted
    plain = {name.partition(" (")[0] for name in (*first.counted, *first.timed)}
    linux = sys.platform == "linux"
    assert plain == {*COUNTED, *TIMED} if linux else plain < {*COUNTED, *TIMED}
    assert replace(first, timed={}, counted={}) == replace(second, timed={}, counted={})
